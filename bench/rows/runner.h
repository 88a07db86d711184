#pragma once
// Runs rows with Google Benchmark. Each row is a benchmark. The rows of a group share the passes of the group: a run of
// a row takes the passes after its earlier runs, and measures them if no other row has measured them. Finished rows
// become entries of a file and lines on the screen.

#include <benchmark/benchmark.h>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
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

  const Row& row_of(const benchmark::BenchmarkReporter::Run&) const;  ///< the row of a run that the library reports
  /// The passes of a run that the library reports. For a statistic: the passes of each of its runs. Runs that lack
  /// passes are left out.
  Runs runs_of(const benchmark::BenchmarkReporter::Run&) const;

 private:
  /// Registers the rows, each with its number of repetitions, and runs them.
  void run(std::span<const Row>, int repetitions, benchmark::BenchmarkReporter& screen,
           benchmark::BenchmarkReporter& file);
  /// Measures passes of one group until the medians of all its rows are known to --noise, or the time is over. Gives
  /// the number of passes.
  int settle(std::span<const Row>);
  /// Does a run of a row for the library. It takes the passes after those of earlier runs.
  void iterate(const Row&, benchmark::State&);

  struct Taken {
    std::size_t next = 0;                                     ///< first pass that no run has taken
    std::vector<std::pair<std::size_t, std::size_t>> runs{};  ///< first pass and number of passes of each run
  };

  std::vector<Row> rows_;
  const RunOptions* options_;
  Meter meter_;
  std::map<const Row*, Taken> taken_;
  std::size_t first_ = 0;                       ///< index in `rows_` of the first registered row
  std::map<std::string, std::string> refused_;  ///< {backend: last reported reason why it cannot run}
};

/// Passes the library's runs to a function that keeps or prints rows. Leaves out interrupted runs, and all failed runs
/// of a row except the first.
class Report final : public benchmark::BenchmarkReporter {
 public:
  using Begin = std::function<void(const Context&)>;
  /// Takes a run, or a statistic of runs, with the passes of each run; no passes: the run failed.
  using Take = std::function<void(const Run&, const Row&, const Outcome&, const Runs&)>;

  Report(const Runner& runner, Take take, Begin begin)
      : runner_(&runner), take_(std::move(take)), begin_(std::move(begin)) {}

  bool ReportContext(const Context&) override;
  void ReportRuns(const std::vector<Run>&) override;

 private:
  const Runner* runner_;
  Take take_;
  Begin begin_;
};

/// A line of the table in the published form: a network on a backend, with means over the passes. Empty for a row that
/// is not a total. The total is the last row of its group.
std::string table_line(const Row&, const Outcome&);

/// A report that adds an entry to a file for each run.
Report file_report(const Runner&, ResultFile&);
/// A report that lets a reporter of the library print runs, with the most important counters. `same_counters`: each
/// line has the same counters, as CSV needs.
Report text_report(const Runner&, benchmark::BenchmarkReporter& by, bool same_counters);
/// A report that prints the table in the published form.
Report table_report(const Runner&);

}  // namespace lamina::bench
