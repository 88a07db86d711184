#pragma once
// What Google Benchmark reports of rows, and rows as entries of a result file in its form.

#include <benchmark/benchmark.h>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rows.h"

namespace lamina::bench {

/// The place of an entry in a file, in Google Benchmark's numbers.
struct Place {
  std::int64_t row = 0;          ///< index of the row in the file
  std::int64_t repetitions = 1;  ///< number of runs of the row
  std::int64_t repetition = 0;   ///< index of this run
  std::int64_t iterations = 1;   ///< number of passes in a run; 0: the run failed
  std::string aggregate{};       ///< "mean", "median", "stddev" or "cv" of the runs; empty: the entry is of one run
  std::map<std::string, double> by_library{};  ///< Google Benchmark's own counters, as of --benchmark_perf_counters
};

/// The numbers of an entry: "real_time" and "cpu_time" in seconds, and counters: rates, memory and readings.
using Figures = std::map<std::string, double>;

/// The passes of each run of a row. Google Benchmark decides how many passes a run has.
using Runs = std::vector<std::span<const Sample>>;

/// The figures of one run: means of the passes' times, and the state of the device after the last pass.
Figures figures_of(const Row&, const Outcome&, std::span<const Sample> run);

/// The figures of several runs, combined by a statistic of Google Benchmark: "mean", "median", "stddev" or "cv". Empty:
/// those of the only run.
Figures figures_of(const Row&, const Outcome&, const Runs&, const std::string& statistic);

/// The first fields of an entry, which all entries have.
Json begin_entry(const std::string& name, const Place&);

/// An entry for samples: its place, its figures, and further facts of the row and its measurement.
Json entry_of(const Row&, const Outcome&, const Place&, benchmark::TimeUnit, const Figures&,
              std::span<const Sample> samples);

/// An entry with the reason why there are no further passes of a row.
Json failure_entry(const Row&, const Outcome&, Place, benchmark::TimeUnit);

/// One entry for all passes of a row that has times. It has the figures of the pass whose time is nearest the median.
/// The lists real_times and cpu_times have the times of all passes, in their order.
Json row_entry(const Row&, const Outcome&, const Place&);

/// Passes the library's runs to a function that keeps or prints rows. Leaves out interrupted runs, and all failed runs
/// of a row except the first.
class Report final : public benchmark::BenchmarkReporter {
 public:
  using Begin = std::function<void(const Context&)>;
  /// Takes a run, or a statistic of runs, with the passes of each run; no passes: the run failed.
  using Take = std::function<void(const Run&, const Row&, const Outcome&, const Runs&)>;

  /// The rows and outcomes must outlive this object.
  Report(std::span<const Row>, const Outcomes&, Take, Begin);

  bool ReportContext(const Context&) override;
  void ReportRuns(const std::vector<Run>&) override;

 private:
  std::span<const Row> rows_;
  std::size_t first_ = 0, next_ = 0;  ///< indices in `rows_`: the first of this group, and the next after the last run
  const Outcomes* outcomes_;
  Take take_;
  Begin begin_;
};

/// A report that adds an entry to a file for each run.
Report file_report(std::span<const Row>, const Outcomes&, ResultFile&);

/// Sets in the outcome the reason why a group could not be measured.
void set_failure(Outcome&, const std::exception&);

/// The time unit of a row: microseconds for a layer, otherwise milliseconds.
benchmark::TimeUnit unit_of(const Row&);

}  // namespace lamina::bench
