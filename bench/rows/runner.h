#pragma once
// Runs rows under Google Benchmark, one benchmark for each. Rows of one group share its passes: a run takes those that
// follow the ones it took before, and measures what is missing.

#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/rows/report/progress.h"
#include "lanes.h"
#include "rows.h"

namespace lamina::bench {

/// A group that is open and warm: each of its passes goes into an outcome.
class OpenGroup {
 public:
  /// Opens the group, and writes what is known before the passes into the outcome. `with_peak`: measures the peak of
  /// its backend, unless that is known. Throws what opening throws.
  OpenGroup(Session&, const Group&, Outcome&, MachineWatch&, bool with_peak);
  void pass();  ///< throws what the pass throws
  std::vector<Span> spans() const { return run_->spans(); }
  bool is_of(const Group& group) const { return group_ == &group; }

 private:
  const Group* group_;
  Outcome* outcome_;
  MachineWatch* watch_;
  std::unique_ptr<GroupRun> run_;
  PeakBeside beside_;
};

class Runner {
 public:
  Runner(Session&, std::vector<Row>, const RunOptions&, Progress&);

  void run(benchmark::BenchmarkReporter& screen, benchmark::BenchmarkReporter& file);

  const std::vector<Row>& rows() const { return rows_; }
  const Outcomes& outcomes() const { return outcomes_; }
  const Lanes& lanes() const { return lanes_; }  ///< of the passes, where the options ask for a trace
  bool any_failed() const;                       ///< a row other than by a refusal
  bool any_measured() const;                     ///< a row with at least one sample

  const Row& row_of(const benchmark::BenchmarkReporter::Run&) const;  ///< as the library reports it

 private:
  /// Registers the rows, each with so many repetitions, and runs them.
  void run(std::span<const Row>, int repetitions, benchmark::BenchmarkReporter& screen,
           benchmark::BenchmarkReporter& file);
  /// Takes passes of rows of one group until the medians of all are known well enough, or the time is over. Gives how
  /// many.
  int settle(std::span<const Row>);
  /// One run of a row, by the passes from `next` on.
  void iterate(const Row&, std::size_t& next, benchmark::State&);
  bool stops() const;  ///< whether to take no further pass: an interrupt, of rank 0 where there are several
  /// Makes sure that the group has sample `index`, unless it fails or is interrupted. Gives whether it has.
  bool measure(const Row&, std::size_t index);

  Session* session_;
  std::vector<Row> rows_;
  const RunOptions* options_;
  Progress* progress_;
  Outcomes outcomes_;
  Lanes lanes_;
  std::size_t first_ = 0;  ///< of the rows that are registered
  std::optional<OpenGroup> open_;
  MachineWatch watch_;
  std::map<std::string, std::string> lost_;     ///< backends whose device fails whatever is asked, and with what
  std::map<std::string, std::string> refused_;  ///< by backend: the last refusal that was reported
};

}  // namespace lamina::bench
