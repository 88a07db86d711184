#pragma once
// The subcommand `run`: the rows that a filter picks, under Google Benchmark, with their file and table.

#include "bench/machine/backends.h"
#include "rows.h"

namespace lamina::bench {

/// Runs the rows, or prints their names. Throws UsageError, FileError. Gives the exit status.
int run_rows(const RunOptions&, const MakeBackend&);

}  // namespace lamina::bench
