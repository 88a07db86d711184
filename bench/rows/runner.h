#pragma once
// Runs rows under Google Benchmark: one iteration by as many repetitions as there are passes.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/rows/report/progress.h"
#include "rows.h"

namespace benchmark {
class State;
class BenchmarkReporter;
}  // namespace benchmark

namespace lamina::bench {

/// A group that is open and warm: each of its passes goes into an outcome.
class OpenGroup {
 public:
  /// Opens the group, and writes what is known before the passes into the outcome. `with_peak`: measures the peak of
  /// its backend, unless that is known. Throws what opening throws.
  OpenGroup(Session&, const Group&, Outcome&, MachineWatch&, bool with_peak);
  void pass();  ///< throws what the pass throws
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
  /// `passes`: as asked.
  Runner(Session&, std::vector<Row>, int passes, Progress&);

  void run(benchmark::BenchmarkReporter&);

  const std::vector<Row>& rows() const { return rows_; }
  const Outcomes& outcomes() const { return outcomes_; }
  bool any_failed() const;    ///< a row other than by a refusal
  bool any_measured() const;  ///< a row with at least one sample

 private:
  void repetition(const Row&, std::size_t index, benchmark::State&);
  /// Makes sure that the group has sample `index`, or a failure.
  void measure(const Row&, std::size_t index);

  Session* session_;
  std::vector<Row> rows_;
  int passes_;
  Progress* progress_;
  Outcomes outcomes_;
  std::optional<OpenGroup> open_;
  MachineWatch watch_;
  std::map<std::string, std::string> lost_;  ///< backends whose device fails whatever is asked, and with what
};

}  // namespace lamina::bench
