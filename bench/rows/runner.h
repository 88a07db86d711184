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
  const Group* open_ = nullptr;  ///< whose measurement is alive
  std::unique_ptr<GroupRun> measurement_;
  std::optional<PeakBeside> beside_;  ///< its passes
  MachineWatch watch_;
  std::map<std::string, std::string> lost_;  ///< backends whose device fails whatever is asked, and with what
};

}  // namespace lamina::bench
