#pragma once
// The loop that measures rows. Rows of one group share its passes, each of which goes into an outcome.
// The progress on standard error: the row that runs, and the time left.

#include <chrono>
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

  /// Makes sure that the group has sample `index`, unless it fails or is interrupted. Gives whether it has.
  bool measure(const Row&, std::size_t index);
  Outcome& outcome(const Row& row) {
    return outcomes_.try_emplace(row.group.get(), row.group->parts.size()).first->second;
  }
  Outcome take(const Row&);  ///< closes the group, and forgets it
  const Outcomes& outcomes() const { return outcomes_; }
  void close() { open_ = nullptr, run_.reset(); }    ///< gives back the memory of the group that is open
  const TraceFile& trace() const { return trace_; }  ///< of the passes, where the options ask for one

 private:
  bool stops() const;  ///< whether to take no further pass: an interrupt, of rank 0 where there are several
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
  std::map<std::string, std::string> lost_;  ///< backends whose device fails whatever is asked, and with what
  TraceFile trace_;
  std::string traced_;      ///< the network of the last passes in the trace
  int process_ = 0;         ///< its number there
  double trace_start_ = 0;  ///< of that network; each machine has a clock of its own
};

class Progress {
 public:
  Progress() = default;
  /// `passes`: as asked. Measures the peak of each backend that takes part, for a first guess.
  Progress(Peaks&, const std::vector<Row>& rows, int passes);

  double left_seconds() const;  ///< 0: not known
  /// A line that is written over (terminal), or one per group; pass 0 warms up. `passes` 0: not known.
  void show(const Row&, int pass, int passes);
  void pass_done(const Group&);
  void group_failed(const Group&, int passes_left);

 private:
  double total_ = 0, done_ = 0;  ///< floating-point operations
  double guessed_rate_ = 0;      ///< operations per second
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const Group* shown_ = nullptr;
  std::size_t group_count_ = 0, group_ = 0;
};

}  // namespace lamina::bench
