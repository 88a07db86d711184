#pragma once
// Runs rows with Google Benchmark. Each row is a benchmark. The rows of a group share the passes of the group: a run of
// a row takes the passes after its earlier runs, and measures them if no other row has measured them. Finished rows
// become entries of a file and lines on the screen.

#include <benchmark/benchmark.h>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "entries.h"
#include "meter.h"

namespace lamina::bench {

class Runner {
 public:
  Runner(Session&, std::vector<Row>, const RunOptions&, Progress&);

  void run(benchmark::BenchmarkReporter& screen, benchmark::BenchmarkReporter& file);

  const std::vector<Row>& rows() const { return rows_; }
  const Outcomes& outcomes() const { return meter_.outcomes(); }
  const TraceFile& trace() const { return meter_.trace(); }
  bool any_failed() const;    ///< whether a row failed; a row that is not supported has not failed
  bool any_measured() const;  ///< whether a row has at least one sample

 private:
  /// Registers the rows, each with its number of repetitions, and runs them.
  void run(std::span<const Row>, int repetitions, benchmark::BenchmarkReporter& screen,
           benchmark::BenchmarkReporter& file);
  /// Measures passes of one group until the medians of all its rows are known to --noise, or the time is over. Gives
  /// the number of passes.
  int settle(std::span<const Row>);
  /// Does a run of a row for the library. It takes the passes after those of earlier runs.
  void iterate(const Row&, benchmark::State&);

  std::vector<Row> rows_;
  const RunOptions* options_;
  Meter meter_;
  std::map<std::string, std::string> refused_;  ///< {backend: last reported reason why it cannot run}
};

/// A line of the table in the published form: a network on a backend, with means over the passes. Empty for a row that
/// is not a total. The total is the last row of its group.
std::string table_line(const Row&, const Outcome&);

/// A report that lets a reporter of the library print runs, with the most important counters. `same_counters`: each
/// line has the same counters, as CSV needs.
Report text_report(const Runner&, benchmark::BenchmarkReporter& by, bool same_counters);
/// A report that prints the table in the published form.
Report table_report(const Runner&);

}  // namespace lamina::bench
