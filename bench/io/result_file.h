#pragma once
// The rows as a JSON file of Google Benchmark's form, whole at every moment.

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace lamina::bench {

/// The format of every file of results (bench/results.schema.json): readers refuse a greater number.
constexpr int result_format = 2;

/// Writes to a neighbour and renames it, so that a full disk or an interrupt leaves what was there.
/// Throws FileError: what could not be written, why, and what to do.
void replace_file(const std::filesystem::path&, const std::string& contents);

/// The text of a file of results: each entry of each list is one line.
std::string file_text(const nlohmann::ordered_json& document);

/// For Json::parse(): leaves out what is nested deeper than any file of ours. Each level would need the stack when such
/// a value is copied, printed or destroyed.
inline bool not_too_deep(int depth, nlohmann::ordered_json::parse_event_t /*event*/,
                         nlohmann::ordered_json& /*value*/) {
  constexpr int deepest = 100;
  return depth <= deepest;
}

/// Makes the folder of a file if need be and tries to write there. Throws FileError.
void check_writable(const std::filesystem::path& file);

/// Keeps other processes of this machine from a file of results until this one ends. Throws FileError where another has
/// it.
void claim(const std::filesystem::path& file);

/// A document that grows in memory and is saved now and then.
class ResultFile {
 public:
  explicit ResultFile(std::filesystem::path);  ///< claims the file

  nlohmann::ordered_json document = {{"context", nlohmann::ordered_json::object()},
                                     {"benchmarks", nlohmann::ordered_json::array()}};

  /// Writes the file unless that was done within the last second.
  void save_now_and_then();
  /// Writes the file. A failure is reported on standard error, once.
  void try_to_save();
  /// Writes the file. Throws FileError.
  void save() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;  ///< empty: nothing is ever written
  std::chrono::steady_clock::time_point saved_{};
  bool complained_ = false;
};

}  // namespace lamina::bench
