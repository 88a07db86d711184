// The flags of ONNX files: which files, and how they are read.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <system_error>

#include "flags.h"
#include "lamina/error.h"
#include "lamina/onnx.h"

namespace lamina::bench {
namespace {

/// "height=224" as an entry each; throws CLI11's error.
void take_extents(std::map<std::string, std::int64_t>& extents, const std::vector<std::string>& pairs) {
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.rfind('=');
    const char* const end = pair.data() + pair.size();
    std::int64_t extent = 0;
    if (equals != std::string::npos) {
      const auto [read_to, error] = std::from_chars(pair.data() + equals + 1, end, extent);
      if (error != std::errc() || read_to != end) extent = 0;
    }
    if (equals == 0 || extent < 1)
      throw CLI::ValidationError("--onnx_extents", fmt::format("takes pairs as height=224, not \"{}\"", pair));
    if (!extents.emplace(pair.substr(0, equals), extent).second)
      throw CLI::ValidationError("--onnx_extents", fmt::format("names {} twice", pair.substr(0, equals)));
  }
}

/// Networks are called by the names of their files.
void check_names(const std::vector<std::filesystem::path>& files) {
  std::map<std::string, std::string> known;
  for (const std::filesystem::path& file : files) {
    const auto [first, is_new] = known.emplace(network_name(file), file.string());
    if (is_new) continue;
    if (first->second == file.string())
      throw UsageError(fmt::format("--onnx names {} twice; once is enough", file.string()));
    throw UsageError(
        fmt::format("--onnx: {} and {} are both called {}; rename one", first->second, file.string(), first->first));
  }
}

std::string open_text(const std::filesystem::path& file, const std::vector<OnnxOpenExtent>& open) {
  std::vector<std::string> names;
  for (const OnnxOpenExtent& extent : open) names.push_back(extent.name + (extent.batch ? " (of --batch)" : ""));
  return fmt::format("{} leaves {} open", file.string(),
                     names.empty() ? "no axis" : fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace

CLI::Option* add_onnx_files(CLI::App& app, const std::string& name, std::vector<std::filesystem::path>& files) {
  return app
      .add_option_function<std::vector<std::filesystem::path>>(
          name, [&files](const auto& given) { check_names(files = given); },
          "ONNX files: networks that are called by the names of their files")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::ExistingFile)
      ->type_name("FILE[,...]");
}

CLI::Option* add_onnx_extents(CLI::App& app, const std::string& name, std::map<std::string, std::int64_t>& extents) {
  return app
      .add_option_function<std::vector<std::string>>(
          name, [&extents](const auto& pairs) { take_extents(extents, pairs); },
          "Extents of axes that these files leave open, by their names in the files")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME=EXTENT[,...]")
      ->needs("--onnx");
}

void check_onnx_extents(const std::vector<std::filesystem::path>& files, const OnnxSettings& settings) {
  if (settings.extents.empty()) return;
  std::set<std::string> names;
  std::vector<std::string> all;
  for (const std::filesystem::path& file : files) {
    const std::vector<OnnxOpenExtent> open = onnx_open_extents(file);
    for (const OnnxOpenExtent& extent : open) names.insert(extent.name);
    all.push_back(open_text(file, open));
  }
  for (const auto& [name, extent] : settings.extents)
    if (!names.contains(name))
      throw UsageError(fmt::format("--onnx_extents: no axis is open by the name {}; {}", name, fmt::join(all, "; ")));
}

}  // namespace lamina::bench
