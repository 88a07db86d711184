#pragma once
// A file of results: JSON in the form of Google Benchmark's files. At every moment the file is complete.

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace lamina::bench {

using Json = nlohmann::ordered_json;  ///< its fields keep their order

/// The number of this format of result files (bench/results.schema.json). Readers refuse a file with a greater number.
constexpr int result_format = 2;

/// Writes a new file beside the old file and gives it the old file's name, so that a full disk or an interrupt leaves
/// the old file.
/// Throws FileError, which says what could not be written, why, and what to do.
void replace_file(const std::filesystem::path&, const std::string& contents);

/// The text of a file of results: each entry of each list is one line.
std::string file_text(const Json& document);

/// A callback for Json::parse() that leaves out values nested deeper than 100 levels. Our files have fewer levels. A
/// bad file with more levels could overflow the stack, because copying, printing and destroying a value recurse.
inline bool not_too_deep(int depth, Json::parse_event_t /*event*/, Json& /*value*/) {
  constexpr int deepest = 100;
  return depth <= deepest;
}

/// Makes the folder of a file if it does not exist, and tries to write there. Throws FileError.
void check_writable(const std::filesystem::path& file);

/// Claims a file of results for this process until the process ends. Throws FileError if another process of this
/// machine has claimed it.
void claim(const std::filesystem::path& file);

/// The name of a row, made of the fields of its key (bench/measure/row_key.h). Example:
/// "layer/resnet50/conv1/forward/eigen/default/f32/nchw/batch:16/recompute".
inline std::string row_name(const Json& key) {
  std::string name = key.at("what").get<std::string>();
  for (const char* field : {"network", "layer", "part", "backend", "algorithm", "type", "layout"})
    if (const auto found = key.find(field); found != key.end() && !found->get<std::string>().empty())
      name += "/" + found->get<std::string>();
  name += "/batch:" + std::to_string(key.at("batch").get<int>());
  if (key.contains("differs"))
    for (const auto& [what, value] : key["differs"].items())
      name += "/" + what + (value.get<std::string>().empty() ? "" : ":" + value.get<std::string>());
  return name;
}

/// A document that grows in memory and is saved now and then.
class ResultFile {
 public:
  /// Claims the file. Throws FileError if it cannot be written.
  explicit ResultFile(std::filesystem::path);

  Json document = {{"context", Json::object()}, {"benchmarks", Json::array()}};

  bool wanted() const { return !path_.empty(); }
  /// Adds an entry to a list, then calls save_now_and_then(). `rerun`: command that measures the entry again; empty:
  /// the entry gets no command.
  void add(const char* list, Json entry, const std::string& rerun = {});
  /// Writes the file, unless it was written within the last second.
  void save_now_and_then();
  /// Writes the file. Reports only the first failure, on standard error.
  void try_to_save();
  /// Writes the file. Throws FileError.
  void save() const;

 private:
  std::filesystem::path path_;  ///< empty: nothing is ever written
  std::chrono::steady_clock::time_point saved_{};
  bool complained_ = false;
};

}  // namespace lamina::bench
