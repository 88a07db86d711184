// A file of results, complete at every moment.

#include "result_file.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "lamina/error.h"
#include "lamina/new_file.h"
#include "lamina/random.h"

namespace lamina::bench {

void replace_file(const std::filesystem::path& path, const std::string& contents) {
  NewFile file(path, NewFile::Special::written);
  file.write(std::as_bytes(std::span(contents)));
  file.keep();
}

std::string file_text(const Json& document) {
  const auto text_of = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  const auto name_of = [&](const Json& in, const auto& name) { return (in.is_object() ? text_of(name) + ": " : ""); };
  const auto lines = [&](const Json& value) {
    if (!value.is_structured() || value.empty()) return text_of(value);
    std::string text;
    for (const auto& [name, each] : value.items())
      text += (text.empty() ? "\n" : ",\n") + name_of(value, name) + text_of(each);
    return value.is_array() ? "[" + text + "\n]" : "{" + text + "\n}";
  };
  std::string text;
  for (const auto& [name, each] : document.items())
    text += (text.empty() ? "" : ",\n") + name_of(document, name) + lines(each);
  return "{" + text + "}\n";
}

void check_writable(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error)
    throw FileError(fmt::format("cannot make the folder {}: {}; give another file", folder.string(), error.message()));
  if (!std::filesystem::is_other(std::filesystem::status(file, error))) NewFile{file};  // a trial: it is removed
}

void claim(const std::filesystem::path& file) {
  static std::set<std::string> claimed;
  std::error_code error;
  if (std::filesystem::is_other(std::filesystem::status(file, error))) return;
  const std::string whole = std::filesystem::weakly_canonical(std::filesystem::absolute(file)).string();
  if (!claimed.insert(whole).second) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("lamina_bench {:016x}", hash(whole));
  // The leading 0 byte makes the name abstract: no file is created.
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int claim = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);  // open until the process ends
  if (::bind(claim, reinterpret_cast<const sockaddr*>(&address), size) != 0 && errno == EADDRINUSE)
    throw FileError(
        fmt::format("{}: another lamina_bench writes this file now; wait for it, or give another file", file.string()));
}

ResultFile::ResultFile(std::filesystem::path path) : path_(std::move(path)) {
  if (!wanted()) return;
  check_writable(path_);
  claim(path_);
}

void ResultFile::add(const char* list, Json entry, const std::string& rerun) {
  if (!wanted()) return;
  if (!rerun.empty()) entry["rerun"] = rerun;
  document[list].push_back(std::move(entry));
  save_now_and_then();
}

void ResultFile::save() const {
  if (wanted()) replace_file(path_, file_text(document));
}

void ResultFile::save_now_and_then() {
  if (std::chrono::steady_clock::now() - saved_ >= std::chrono::seconds(1)) try_to_save();
}

void ResultFile::try_to_save() {
  if (!wanted()) return;
  try {
    save();
    saved_ = std::chrono::steady_clock::now();
  } catch (const FileError& error) {
    if (!complained_) fmt::print(stderr, "lamina_bench: {}; it goes on, and will try again\n", error.what());
    complained_ = true;
  }
}

}  // namespace lamina::bench
