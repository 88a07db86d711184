#pragma once
// Where a network's time goes: every call of its plan timed alone, and their sum against the whole.

#include <filesystem>
#include <string>
#include <vector>

#include "bench/measure/layers.h"
#include "bench/measure/row_key.h"

namespace lamina::bench {

class TraceFile;

struct LedgerOptions : TaskOptions {
  std::filesystem::path trace{};  ///< file of the ledgers as a trace for Perfetto; empty: none
};

struct LedgerEntry {
  std::string layers;  ///< names of the layers: "conv1", "bn1 + relu"
  std::vector<Pass> passes;
  std::string algorithm;
  double seconds = 0;           ///< median over the passes
  double flops = 0, bytes = 0;  ///< cost of the call (Call::cost)
  std::vector<std::string> nodes{};
  std::string op{};  ///< op of the first node
  std::vector<double> samples{};
  double share_of_peak = 0;  ///< median over the passes, relative to the peak beside each; 0: not known
  std::size_t workspace_bytes = 0, live_bytes = 0;  ///< bytes; live: in use in the arena while it runs
};

/// The rates that the device reaches, on which the shares of a ledger are based.
struct Rates {
  Peak units{};
  double product_flops_per_second = 0, memory = 0;  ///< operations and bytes per second; 0: not known

  /// The least time of this work at these rates; 0: the rates are not known.
  double least_seconds(double flops, double bytes) const;
};

struct Ledger {
  std::vector<LedgerEntry> entries;                  ///< entries in the plan's order, forward first
  double forward_seconds = 0, backward_seconds = 0;  ///< medians of the same plan, timed whole without stamps
  std::vector<double> forward_samples, backward_samples;
  std::vector<Moment> moments;  ///< moments of the processor beside each pass; empty: not measured
  GraphCost moved, alone;       ///< costs by the plan's calls, and by each pass of each op alone
  /// Fewer than requested: interrupted; 0: there are no times.
  int passes() const { return static_cast<int>(forward_samples.size()); }
  double sum() const;
  double whole() const { return forward_seconds + backward_seconds; }
};

/// Adds a process of this name to the trace, with the calls in running order, one after another from 0: a ledger has
/// times and no moments. One lane has the measured times, one the least times that the measured rates allow; beside
/// them are the bytes in use.
void add_ledger(TraceFile&, const std::string& name, const Ledger&, const Rates&);

/// Prints the ledgers of all networks, backends and batches that the options name, as text or CSV, each when it is
/// measured. After an interrupt it prints the finished part, and says on standard error what is missing.
void ledgers(Session&, const LedgerOptions&, const Print&);

}  // namespace lamina::bench
