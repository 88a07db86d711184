#pragma once
// The subcommand `sweep`: networks at many batches, numbers of threads, image sizes, types, layouts and backends, as
// rows of one file that a later call with the same flags completes.

#include <vector>

#include "bench/rows/rows.h"

namespace lamina::bench {

struct SweepOptions : RunOptions {
  SweepOptions() { configs.batches.clear(); }  // empty: 1, 2, 4, ... until out of memory, 15 and 17

  std::vector<int> thread_counts{};  ///< numbers of threads; empty: doubled, up to all
  std::vector<int> images{};         ///< rows and columns of images; empty: those of --image
  double longest_pass = 20;          ///< most seconds of a pass: larger batches are left out, and named
};

/// Runs the points that the file lacks, prints all points and the answers, and gives the exit status. A series that
/// cannot be planned is left out, and named on standard error, in the printed text and in the file. If no series is
/// left, there is no file. Before anything is measured, throws UsageError for names and flags that do not fit and for a
/// file of other settings. Throws FileError.
int sweep(const SweepOptions&, const MakeBackend&, const Print&);

}  // namespace lamina::bench
