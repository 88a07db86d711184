// A file has a line with the hash of the rest, a line with the lengths of key and plan, the key, and the plan.

#include "kept_plans.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include "lamina/error.h"
#include "lamina/new_file.h"
#include "lamina/random.h"

namespace lamina::cudnn::graph {
namespace {

namespace fs = std::filesystem;

/// The hash of a text, as 16 digits.
std::string sum_of(const std::string& text) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash(text)));
  return digits;
}

constexpr const char* first_line = "lamina cuDNN plan 1, sum ";

std::string contents_of(const std::string& key, const std::string& plan) {
  const std::string body =
      std::to_string(key.size()) + " " + std::to_string(plan.size()) + "\n" + key + "\n" + plan + "\n";
  return first_line + sum_of(body) + "\n" + body;
}

}  // namespace

KeptPlans::KeptPlans(fs::path folder) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!fs::is_directory(folder_))
    throw FileError(folder_.string() + ": not a folder for plans" + (error ? ": " + error.message() : ""));
}

fs::path KeptPlans::file(const std::string& key) const { return folder_ / (sum_of(key) + ".plan"); }

std::optional<std::string> KeptPlans::find(const std::string& key, std::string& complaint) const {
  std::ifstream stream(file(key), std::ios::binary);
  if (!stream) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  // The plan follows the key. The file is undamaged if it equals what keep() would write for this plan.
  const std::string before = "\n" + key + "\n";
  if (const std::size_t at = text.find(before); at != text.npos) {
    const std::size_t begin = at + before.size();
    std::string plan = text.substr(begin, text.size() - begin - 1);
    if (contents_of(key, plan) == text) return plan;
  }
  complaint = file(key).string() + " is damaged, or of another key";
  return std::nullopt;
}

void KeptPlans::keep(const std::string& key, const std::string& plan, std::string& complaint) const {
  try {
    NewFile kept(file(key));
    const std::string contents = contents_of(key, plan);
    kept.write(std::as_bytes(std::span(contents)));
    kept.keep();
  } catch (const FileError& error) {
    complaint = error.what();
  }
}

std::string plan_properties(const std::string& json) {
  std::string plain, text;
  std::ranges::copy_if(json, std::back_inserter(plain), [](unsigned char c) { return std::isspace(c) == 0; });
  for (const std::string name :
       {"deviceVer", "driverVer", "multiProcessorCount", "warpSize", "maxThreadsPerBlock", "maxThreadsPerSM",
        "maxCtasPerSM", "regsPerBlock", "maxRegistersPerSM", "maxSharedMemoryPerBlock", "maxSharedMemoryPerBlockOptin",
        "reservedSharedMemoryPerBlock", "maxBlockSize", "maxGridSize"}) {
    text += (text.empty() ? "" : ", ") + name + " ";
    const std::size_t found = plain.find('"' + name + "\":"), begin = found + name.size() + 3;
    if (found == plain.npos) continue;
    const bool is_list = plain[begin] == '[';
    text += plain.substr(begin, (is_list ? plain.find(']', begin) + 1 : plain.find_first_of(",}", begin)) - begin);
  }
  return text;
}

}  // namespace lamina::cudnn::graph
