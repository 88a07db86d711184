#pragma once
// Runs rows under Google Benchmark, one benchmark for each. Rows of one group share its passes: a run takes those that
// follow the ones it took before, and measures what is missing.

#include <benchmark/benchmark.h>

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
  Runner(Session&, std::vector<Row>, const RunOptions&, Watcher&);

  void run(benchmark::BenchmarkReporter& screen, benchmark::BenchmarkReporter& file);

  const std::vector<Row>& rows() const { return rows_; }
  const Outcomes& outcomes() const { return meter_.outcomes(); }
  const TraceFile& trace() const { return meter_.trace(); }
  bool any_failed() const;    ///< a row other than by a refusal
  bool any_measured() const;  ///< a row with at least one sample

  const Row& row_of(const benchmark::BenchmarkReporter::Run&) const;  ///< row that the library reports
  /// The passes of a run that the library reports, or of each run that a statistic is of; those that could not have all
  /// their passes are left out.
  Runs runs_of(const benchmark::BenchmarkReporter::Run&) const;

 private:
  /// Registers the rows, each with so many repetitions, and runs them.
  void run(std::span<const Row>, int repetitions, benchmark::BenchmarkReporter& screen,
           benchmark::BenchmarkReporter& file);
  /// Takes passes of rows of one group until the medians of all are known well enough, or the time is over. Gives how
  /// many.
  int settle(std::span<const Row>);
  /// One run of a row, by the passes that follow those of the runs before.
  void iterate(const Row&, benchmark::State&);

  struct Taken {
    std::size_t next = 0;                                     ///< first pass that no run has taken
    std::vector<std::pair<std::size_t, std::size_t>> runs{};  ///< first pass and number of passes of each run
  };

  std::vector<Row> rows_;
  const RunOptions* options_;
  Meter meter_;
  std::map<const Row*, Taken> taken_;
  std::size_t first_ = 0;                       ///< of the rows that are registered
  std::map<std::string, std::string> refused_;  ///< by backend: the last refusal that was reported
};

}  // namespace lamina::bench
