#pragma once
// The loop that measures rows. Rows of one group share the passes of the group, which are kept in an outcome.
// The progress on standard error: the running row, and the time left.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/context/trace_file.h"
#include "rows.h"

namespace lamina::bench {

class Progress;

class Meter {
 public:
  Meter(Session& session, const RunOptions& options, Progress& progress)
      : session_(&session), options_(&options), progress_(&progress) {}

  /// Measures until the row's group has sample `index`. Gives whether the group has this sample: a failure or an
  /// interrupt may prevent it.
  bool measure(const Row&, std::size_t index);
  Outcome& outcome(const Row& row) {
    return outcomes_.try_emplace(row.group.get(), row.group->parts.size()).first->second;
  }
  Outcome take(const Row&);  ///< closes the group and forgets it; gives its outcome
  const Outcomes& outcomes() const { return outcomes_; }
  void close() { open_ = nullptr, run_.reset(); }    ///< frees the memory of the open group
  const TraceFile& trace() const { return trace_; }  ///< trace of the passes, if the options ask for one

 private:
  bool stops() const;  ///< whether an interrupt of rank 0 forbids further passes
  void open(const Group&, Outcome&);
  void pass(const Group&, Outcome&);
  void add_spans(const std::string& network, const std::vector<Span>&);

  Session* session_;
  const RunOptions* options_;
  Progress* progress_;
  Outcomes outcomes_;
  const Group* open_ = nullptr;
  std::unique_ptr<TimedRun> run_;
  std::unique_ptr<PeakBeside> beside_;
  MachineWatch watch_;
  std::map<std::string, std::string> lost_;  ///< {backend whose device fails at any work: the error}
  TraceFile trace_;
  std::string traced_;      ///< network of the last passes in the trace
  int process_ = 0;         ///< number of this network's process in the trace
  double trace_start_ = 0;  ///< start of this network's process; each machine has its own clock
};

class Progress {
 public:
  Progress() = default;
  /// Measures the peak of each backend of the rows, for a first guess. `passes`: number from the user; 0: the default.
  Progress(Peaks&, const std::vector<Row>& rows, int passes);

  double left_seconds() const;  ///< seconds left; 0: not known
  /// Shows the progress: on a terminal in one line that is overwritten, otherwise in a line for each group. `pass` 0:
  /// the pass that warms up. `passes` 0: the number is not known.
  void show(const Row&, int pass, int passes);
  void pass_done(const Group&);
  void group_failed(const Group&, int passes_left);

 private:
  double total_ = 0, done_ = 0;  ///< floating-point operations of all rows, and of finished passes
  double guessed_rate_ = 0;      ///< guessed rate, in operations per second
  double start_ = steady_seconds();
  const Group* shown_ = nullptr;
  std::size_t group_count_ = 0, group_ = 0;
};

}  // namespace lamina::bench
