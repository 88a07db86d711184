#pragma once
// The subcommand `sweep`: networks at many batches, numbers of threads, image sizes, types, layouts and backends. The
// results are rows of one file. After an interrupt, a call with the same flags completes the file.

#include <vector>

#include "bench/rows/rows.h"

namespace lamina::bench {

struct SweepOptions : RunOptions {
  SweepOptions() { configs.batches.clear(); }  // empty: 1, 2, 4, ... as far as memory allows, 15 and 17

  std::vector<int> thread_counts{};  ///< numbers of threads; empty: 1, 2, 4, ... and all
  std::vector<int> images{};         ///< rows and columns of images; empty: the value of --image
  double longest_pass = 20;          ///< most seconds of a pass; batches that would take longer are left out
};

/// Measures the points that the file lacks, prints all points and the answers, and gives the exit status. A series that
/// cannot be planned is left out, and reported on standard error, in the printed text and in the file. If no series is
/// left, there is no file. Throws UsageError, before anything is measured, for bad names and flags and for a file of
/// another sweep. Throws FileError.
int sweep(const SweepOptions&, const MakeBackend&, const Print&);

}  // namespace lamina::bench
