#pragma once
// A file of results, read as rows with their samples. A row comes from `run` or `sweep`, from a call of a ledger, or
// from a variant that took turns with others.

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench/io/result_file.h"

namespace lamina::bench {

/// A row of a file.
struct RunRow {
  Json key{};
  std::vector<double> seconds{};       ///< duration of each pass
  std::vector<double> cpu_seconds{};   ///< processor time of each pass, of all threads; empty: the file has none
  std::vector<std::int64_t> rounds{};  ///< number of each pass, or of each round if variants took turns
  std::string failure{};               ///< reason why there are no further passes; begins with its kind
  std::string grade{};                 ///< grade; empty: the file has none
  double others_share = 0;    ///< share of all processors' time that other programs took; 0: little, or not known
  std::size_t disturbed = 0;  ///< number of rounds that other programs disturbed, from the file
  double plan_MiB = 0;        ///< memory of the plan, workspace included; 0: not known
  std::string algorithm{};    ///< algorithm that the backend picked; empty: the file has none
  std::string rerun{};        ///< command that measures the row again; empty: not known

  bool operator==(const RunRow&) const = default;
};

struct RunFile {
  std::filesystem::path path;
  Json context;
  std::map<std::string, RunRow> rows;  ///< rows by name

  std::string fact(const char* name) const;  ///< a fact of the context, as text; empty: the context lacks it
};

/// The facts that are the same in all files of one program.
inline constexpr std::array program_facts = {"commit", "build_type", "compiler", "compiler_flags"};

/// The facts of machine and threads that differ, a line for each. Empty: the rows may be compared. Rows of different
/// machines differ even if the program is the same.
std::vector<std::string> other_machine(const RunFile& first, const RunFile& second);

/// Throws FileError, which says what is wrong with the file and what to do.
RunFile read_run_file(const std::filesystem::path&, bool may_be_empty = false);

/// The processes of a side: one file, or all files *.json of a folder, a file for each process, in the order of their
/// start. Throws FileError.
std::vector<RunFile> read_processes(const std::filesystem::path&);

/// One of several variants that took turns and share a file.
struct Variant {
  std::string name;
  std::map<std::string, RunRow> rows;  ///< rows by name; `rounds` has the round of each sample
};

struct PairedFile {
  Json document;
  std::vector<Variant> variants;  ///< variants in the order of the context
};

/// Throws FileError, which says what is wrong with the file and what to do.
PairedFile read_paired_file(const std::filesystem::path&);

}  // namespace lamina::bench
