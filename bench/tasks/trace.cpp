// Ledgers as a trace.

#include "bench/context/trace_file.h"
#include "bench/measure/layers.h"
#include "ledger.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

enum Lane { measured = 1, predicted = 2 };

Json facts_of(const LedgerEntry& entry, const Rates& rates, Lane lane) {
  Json facts = {{"pass", passes_text(entry.passes)},
                {"algorithm", entry.algorithm},
                {"flops", entry.flops},
                {"bytes", entry.bytes},
                {"workspace_bytes", entry.workspace_bytes}};
  if (lane == measured && entry.seconds > 0) {
    facts["GFLOP/s"] = 1e-9 * entry.flops / entry.seconds;
    facts["GB/s"] = 1e-9 * entry.bytes / entry.seconds;
    if (rates.units.flops_per_second > 0) facts["of_peak"] = entry.flops / entry.seconds / rates.units.flops_per_second;
  }
  return {{"cat", entry.op}, {"args", facts}};
}

}  // namespace

void add_ledger(TraceFile& trace, const std::string& name, const Ledger& ledger, const Rates& rates) {
  const int process = trace.add_process(name);
  trace.add_lane(process, measured, "measured");
  const bool known = rates.least_seconds(1, 1) > 0;
  if (known) trace.add_lane(process, predicted, "least time at the measured rates");
  double now = 0, predicted_now = 0;  // each lane from 0: its length is its sum
  for (const LedgerEntry* entry : ledger.in_order()) {
    trace.add_bytes(process, "live bytes", now, entry->live_bytes);
    trace.add(process, measured, entry->layers, now, entry->seconds, facts_of(*entry, rates, measured));
    now += entry->seconds;
    if (!known) continue;
    const double least = rates.least_seconds(entry->flops, entry->bytes);
    trace.add(process, predicted, entry->layers, predicted_now, least, facts_of(*entry, rates, predicted));
    predicted_now += least;
  }
  trace.add_bytes(process, "live bytes", now, 0);
}

}  // namespace lamina::bench
