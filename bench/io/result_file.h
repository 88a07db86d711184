#pragma once
// A file of results: JSON in the form of Google Benchmark's files. At every moment the file is complete.

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace lamina::bench {

using Json = nlohmann::ordered_json;  ///< its fields keep their order

/// The format of every file of results (bench/results.schema.json): readers refuse a greater number.
constexpr int result_format = 2;

/// Writes a new file beside the old one and renames it, so that a full disk or an interrupt leaves the old file.
/// Throws FileError, which says what could not be written, why, and what to do.
void replace_file(const std::filesystem::path&, const std::string& contents);

/// The text of a file of results: each entry of each list is one line.
std::string file_text(const Json& document);

/// For Json::parse(): leaves out values that are nested deeper than any file of ours. Each level would take stack
/// when such a value is copied, printed or destroyed.
inline bool not_too_deep(int depth, Json::parse_event_t /*event*/, Json& /*value*/) {
  constexpr int deepest = 100;
  return depth <= deepest;
}

/// Makes the folder of a file if need be and tries to write there. Throws FileError.
void check_writable(const std::filesystem::path& file);

/// Claims a file of results for this process until the process ends. Throws FileError if another process of this
/// machine has claimed it.
void claim(const std::filesystem::path& file);

/// "layer/resnet50/conv1/forward/eigen/default/f32/nchw/batch:16/recompute": the name of a row with these fields of a
/// key (bench/measure/row_key.h).
inline std::string row_name(const Json& key) {
  std::string name = key.at("what").get<std::string>();
  for (const char* field : {"network", "layer", "part", "backend", "algorithm", "type", "layout"})
    if (const auto found = key.find(field); found != key.end() && !found->get<std::string>().empty())
      name += "/" + found->get<std::string>();
  name += "/batch:" + std::to_string(key.at("batch").get<int>());
  if (key.contains("differs"))
    for (const auto& [what, value] : key["differs"].items())
      name += "/" + what + (value == "" ? "" : ":" + value.get<std::string>());
  return name;
}

/// A document that grows in memory and is saved now and then.
class ResultFile {
 public:
  /// Claims the file. Throws FileError if it cannot be written.
  explicit ResultFile(std::filesystem::path);

  Json document = {{"context", Json::object()}, {"benchmarks", Json::array()}};

  bool wanted() const { return !path_.empty(); }
  /// Adds an entry to a list. `rerun`: the command that measures it again; empty: none is added. The file is written
  /// now and then.
  void add(const char* list, Json entry, const std::string& rerun = {});
  /// Writes the file unless that was done within the last second.
  void save_now_and_then();
  /// Writes the file. A failure is reported on standard error, once.
  void try_to_save();
  /// Writes the file. Throws FileError.
  void save() const;

 private:
  std::filesystem::path path_;  ///< empty: nothing is ever written
  std::chrono::steady_clock::time_point saved_{};
  bool complained_ = false;
};

}  // namespace lamina::bench
