#pragma once
// Runs rows under Google Benchmark, a benchmark for each. Rows of a group share its passes: each run of a row takes the
// passes after its earlier passes, and measures the missing ones. Finished rows become entries of a file and
// lines on the screen.

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
  bool any_failed() const;    ///< whether a row failed, other than by a refusal
  bool any_measured() const;  ///< whether a row has at least one sample

  const Row& row_of(const benchmark::BenchmarkReporter::Run&) const;  ///< row of a run that the library reports
  /// The passes of a run that the library reports, or of each run in a statistic. Runs without all their passes are
  /// left out.
  Runs runs_of(const benchmark::BenchmarkReporter::Run&) const;

 private:
  /// Registers the rows, each with its number of repetitions, and runs them.
  void run(std::span<const Row>, int repetitions, benchmark::BenchmarkReporter& screen,
           benchmark::BenchmarkReporter& file);
  /// Takes passes of rows of one group until the medians of all are known well enough, or the time is over. Gives the
  /// number of passes.
  int settle(std::span<const Row>);
  /// A run of a row: it takes the passes after those of earlier runs.
  void iterate(const Row&, benchmark::State&);

  struct Taken {
    std::size_t next = 0;                                     ///< first pass that no run has taken
    std::vector<std::pair<std::size_t, std::size_t>> runs{};  ///< first pass and number of passes of each run
  };

  std::vector<Row> rows_;
  const RunOptions* options_;
  Meter meter_;
  std::map<const Row*, Taken> taken_;
  std::size_t first_ = 0;                       ///< number of the first registered row
  std::map<std::string, std::string> refused_;  ///< last reported refusal, by backend
};

/// Reports the library's runs to a keeper or printer of rows. Interrupted runs are left out. Of each row's failed runs
/// only the first is reported.
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

/// A line of the table of the published form: a network on a backend, means over the passes. Nothing for a row other
/// than a total, which is the last of its group.
std::string table_line(const Row&, const Outcome&);

/// Adds an entry for each run.
Report file_report(const Runner&, ResultFile&);
/// Lets a reporter of the library print runs, with the counters that people look at. `same_counters`: CSV, whose lines
/// all have the same columns.
Report text_report(const Runner&, benchmark::BenchmarkReporter& by, bool same_counters);
/// Prints the table of the published form.
Report table_report(const Runner&);

}  // namespace lamina::bench
