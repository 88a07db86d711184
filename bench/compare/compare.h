#pragma once
// The subcommand `compare`: two sets of files, or variants that took turns in one file, row by row, as a table and as
// JSON, and a limit that fails.

#include <filesystem>
#include <string>
#include <vector>

#include "bench/io/text.h"
#include "comparison.h"

namespace lamina::bench {

struct CompareOptions {
  std::filesystem::path first{}, second{};  ///< each a file, or a folder with a file of each process
  std::filesystem::path paired{};           ///< in place of both: a file with variants that took turns
  std::vector<std::string> subjects{};      ///< variants of it that are compared with all others
  CompareRules rules{};
  bool other_machine = false;  ///< compare even if the files are of different machines or numbers of threads
  Format format = Format::text;
  std::filesystem::path out{};  ///< JSON file of the comparison, which may be `paired` itself; empty: none
};

/// With a limit, the exit status of a comparison in which a row is slower than the limit, fails, or is missing.
constexpr int slower_status = 3;
/// That of one in which no row is so, and some have too few samples to be judged.
constexpr int undecided_status = 4;

/// Prints the comparison and gives the exit status. Throws FileError for files that cannot be read or written, and
/// UsageError for files that cannot be compared.
int compare_files(const CompareOptions&, const Print&);

}  // namespace lamina::bench
