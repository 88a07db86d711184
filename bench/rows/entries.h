#pragma once
// Rows as entries of a result file, in Google Benchmark's form.

#include <benchmark/benchmark.h>
#include <cstdint>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rows.h"

namespace lamina::bench {

/// Place of an entry among those of a file, as Google Benchmark counts them.
struct Place {
  std::int64_t row = 0;          ///< number of the row in the file
  std::int64_t repetitions = 1;  ///< number of the row's runs
  std::int64_t repetition = 0;   ///< number of this run
  std::int64_t iterations = 1;   ///< passes of a run; 0: the run failed
  std::string aggregate{};       ///< "mean", "median", "stddev" or "cv" of the runs; empty: the entry is of one run
  std::map<std::string, double> by_library{};  ///< Google Benchmark's own counters, as from --benchmark_perf_counters
};

/// Seconds "real_time" and "cpu_time", and counters: rates, memory and readings.
using Figures = std::map<std::string, double>;

/// The passes of each run of a row, as Google Benchmark made the runs.
using Runs = std::vector<std::span<const Sample>>;

/// Figures of one run of passes: means of their times, and the state of the device after the last.
Figures figures_of(const Row&, const Outcome&, std::span<const Sample> run);

/// The same figures of several runs, by a statistic of Google Benchmark's: "mean", "median", "stddev" or "cv".
Figures figures_of(const Row&, const Outcome&, const Runs&, const std::string& statistic);

/// The fields that every entry begins with.
Json begin_entry(const std::string& name, const Place&);

/// An entry of the samples: its place, its figures, and further facts of the row and its measurement.
Json entry_of(const Row&, const Outcome&, const Place&, benchmark::TimeUnit, const Figures&,
              std::span<const Sample> samples);

/// An entry that says why there is no further pass of a row.
Json failure_entry(const Row&, const Outcome&, Place, benchmark::TimeUnit);

/// All passes of a row that has times: the entry of the pass whose time is nearest the median, with the times of all
/// passes, in their order, as the lists real_times and cpu_times.
Json row_entry(const Row&, const Outcome&, const Place&);

/// Sets why a group could not be measured, by the error.
void set_failure(Outcome&, const std::exception&);

/// Milliseconds; for layers microseconds, for trainings seconds.
benchmark::TimeUnit unit_of(const Row&);

}  // namespace lamina::bench
