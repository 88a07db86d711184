#pragma once
// The subcommand `sweep`: networks at many batches, numbers of threads, image sizes, types, layouts and backends,
// as rows of one file that a later call with the same flags completes.

#include <string>
#include <vector>

#include "bench/io/text.h"
#include "bench/machine/backends.h"
#include "bench/rows/rows.h"

namespace lamina::bench {

struct SweepOptions : RunOptions {
  SweepOptions() { configs.batches.clear(); }  // unset: doubled until out of memory

  std::vector<int> thread_counts{};  ///< empty: doubled, up to all
  std::vector<int> images{};         ///< empty: the one of --image
  double longest_pass = 20;          ///< seconds: batches that would take longer are left out, and named
};

/// Runs what the file does not have yet, prints the points and the answers, and gives the exit status. What cannot be
/// planned is left out, and named on standard error, in the print and in the file. If nothing else is asked for, there
/// is no file. Throws UsageError for names and flags that do not fit, before anything is measured, and for a file of
/// other settings, and FileError.
int sweep(const SweepOptions&, const MakeBackend&, const Print&);

}  // namespace lamina::bench
