#pragma once
// The loop that measures rows. Rows of one group share its passes, each of which goes into an outcome.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/context/trace_file.h"
#include "rows.h"

namespace lamina::bench {

/// What is told of the passes.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void show(const Row&, int pass, int passes) = 0;  ///< before it; pass 0 warms up. `passes` 0: not known
  virtual void pass_done(const Group&) {}
  virtual void group_failed(const Group&, int /*passes_left*/) {}
};

class Meter {
 public:
  Meter(Session& session, const RunOptions& options, Watcher& watcher)
      : session_(&session), options_(&options), watcher_(&watcher) {}

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
  Watcher* watcher_;
  Outcomes outcomes_;
  const Group* open_ = nullptr;
  std::unique_ptr<GroupRun> run_;
  std::unique_ptr<PeakBeside> beside_;
  MachineWatch watch_;
  std::map<std::string, std::string> lost_;  ///< backends whose device fails whatever is asked, and with what
  TraceFile trace_;
  std::string traced_;      ///< the network of the last passes in the trace
  int process_ = 0;         ///< its number there
  double trace_start_ = 0;  ///< of that network; each machine has a clock of its own
};

}  // namespace lamina::bench
