#pragma once
// The subcommand `compare`: two sets of files, row by row, as a table and as JSON, and a limit that fails.

#include <filesystem>

#include "bench/io/print.h"
#include "bench/io/text_table.h"
#include "comparison.h"

namespace lamina::bench {

struct CompareOptions {
  std::filesystem::path first{}, second{};  ///< each a file, or a folder with a file of each process
  CompareRules rules{};
  bool other_machine = false;  ///< compare even if the files are of different machines or numbers of threads
  Format format = Format::text;
  std::filesystem::path out{};  ///< of the comparison as JSON; empty: none
};

/// The exit status of a comparison in which a row is slower than the limit, fails, or is missing.
constexpr int slower_status = 3;

/// Prints the comparison and gives the exit status. Throws FileError for files that cannot be read or written, and
/// UsageError for files that cannot be compared.
int compare_files(const CompareOptions&, const Print&);

}  // namespace lamina::bench
