#pragma once
// A file of results as rows with their samples, whoever wrote it: rows of `run` and `sweep`, and calls of a ledger.

#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lamina::bench {

/// One row of a file.
struct RunRow {
  nlohmann::ordered_json key{};
  std::vector<double> seconds{};  ///< by pass; of a row of set-up the first alone, which is the first call of a process
  std::vector<double> cpu_seconds{};  ///< likewise, of all threads; empty: the file has none
  std::string failure{};              ///< why there are no further ones, kind first
  std::string grade{};                ///< empty: the file has none
  double others_share = 0;            ///< of all processors' time, by other programs; 0: little, or not known

  std::string field(const char* name) const { return key.value(name, std::string()); }
};

struct RunFile {
  std::filesystem::path path;
  nlohmann::ordered_json context;
  std::map<std::string, RunRow> rows;  ///< by name

  std::string fact(const char* name) const;  ///< of the context, as text; empty: it has none
};

/// The facts that are the same in all files of one program.
inline constexpr std::array program_facts = {"commit", "build_type", "compiler", "compiler_flags"};

/// What of machine and threads differs, one line each: rows of two machines differ for that reason alone.
std::vector<std::string> other_machine(const RunFile& first, const RunFile& second);

/// Throws FileError: what is wrong with the file, and what to do.
RunFile read_run_file(const std::filesystem::path&, bool may_be_empty = false);

/// A file, or all files *.json of a folder, one of each process, in the order in which they were begun. Throws
/// FileError.
std::vector<RunFile> read_processes(const std::filesystem::path&);

}  // namespace lamina::bench
