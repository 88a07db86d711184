#pragma once
// Ledgers: where a network's time goes. Every call of the plan is timed separately, and the sum is compared with the
// whole pass.

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
  double seconds = 0;           ///< median time over the passes
  double flops = 0, bytes = 0;  ///< cost of the call, from Call::cost
  std::vector<std::string> nodes{};
  std::string op{};  ///< op of the first node
  std::vector<double> samples{};
  double share_of_peak = 0;  ///< median share of the peak that was measured beside the pass; 0: not known
  std::size_t workspace_bytes = 0, live_bytes = 0;  ///< workspace, and bytes in use in the arena while the call runs
};

/// The measured rates of the device. The shares in a ledger are relative to them.
struct Rates {
  Peak units{};
  double product_flops_per_second = 0, memory = 0;  ///< flop/s of a large product, bytes/s of the memory; 0: not known

  /// The least time of this work at these rates; 0: the rates are not known.
  double least_seconds(double flops, double bytes) const;
};

struct Ledger {
  std::vector<LedgerEntry> entries;                  ///< entries in the plan's order, forward first
  double forward_seconds = 0, backward_seconds = 0;  ///< median times of whole passes, without timers between calls
  std::vector<double> forward_samples, backward_samples;
  std::vector<Moment> moments;  ///< peak and clock of the processor beside each pass; empty: not measured
  GraphCost moved, alone;       ///< cost as the sum over the plan's calls, and over the unfused passes of all ops
  /// The number of passes. After an interrupt there are fewer than requested; 0: there are no times.
  int passes() const { return static_cast<int>(forward_samples.size()); }
  double sum() const;
  double whole() const { return forward_seconds + backward_seconds; }
};

/// Adds a process of this name to the trace. A ledger has durations, but no start times, so the calls are shown one
/// after another from 0 on. One lane has the measured times. Another lane has the least times that the measured rates
/// allow. A counter has the bytes in use.
void add_ledger(TraceFile&, const std::string& name, const Ledger&, const Rates&);

/// Prints the ledgers of all networks, backends and batches of the options, as text or CSV, each when it is measured.
/// After an interrupt, prints the finished part, and reports the missing part on standard error.
void ledgers(Session&, const LedgerOptions&, const Print&);

}  // namespace lamina::bench
