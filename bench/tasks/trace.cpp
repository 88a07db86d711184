// Ledgers as a trace.

#include "trace.h"

#include <cmath>

#include "bench/context/results.h"
#include "bench/io/result_file.h"
#include "bench/measure/layers.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Whole ones, which are written in the format's microseconds. Readers round to them, and drop a call that begins
/// before the end of the one before.
double nanoseconds(double seconds) { return std::round(1e9 * seconds); }
constexpr double per_microsecond = 1e3;

enum Lane { measured = 1, predicted = 2 };

Json named(const char* what, int process, int lane, const char* argument, const Json& value) {
  Json event = {{"ph", "M"}, {"name", what}, {"pid", process}};
  if (lane > 0) event["tid"] = lane;
  event["args"] = {{argument, value}};
  return event;
}

Json call_event(const LedgerEntry& entry, const Rates& rates, int process, Lane lane, double start, double seconds) {
  Json event = {{"ph", "X"},
                {"name", entry.layers},
                {"cat", entry.op},
                {"ts", nanoseconds(start) / per_microsecond},
                {"dur", (nanoseconds(start + seconds) - nanoseconds(start)) / per_microsecond},
                {"pid", process},
                {"tid", static_cast<int>(lane)},
                {"args",
                 {{"pass", passes_text(entry.passes)},
                  {"algorithm", entry.algorithm},
                  {"flops", entry.flops},
                  {"bytes", entry.bytes},
                  {"workspace_bytes", entry.workspace_bytes}}}};
  if (lane == measured && seconds > 0) {
    event["args"]["GFLOP/s"] = 1e-9 * entry.flops / seconds;
    event["args"]["GB/s"] = 1e-9 * entry.bytes / seconds;
    if (rates.units.flops_per_second > 0)
      event["args"]["of_peak"] = entry.flops / seconds / rates.units.flops_per_second;
  }
  return event;
}

}  // namespace

void Trace::add(const std::string& name, const Ledger& ledger, const Rates& rates) {
  const int process = ++processes_;
  events_.push_back(named("process_name", process, 0, "name", name));
  events_.push_back(named("process_sort_index", process, 0, "sort_index", process));
  events_.push_back(named("thread_name", process, measured, "name", "measured"));
  events_.push_back(named("thread_sort_index", process, measured, "sort_index", static_cast<int>(measured)));
  const bool known = rates.least_seconds(1, 1) > 0;
  if (known) {
    events_.push_back(named("thread_name", process, predicted, "name", "least time at the measured rates"));
    events_.push_back(named("thread_sort_index", process, predicted, "sort_index", static_cast<int>(predicted)));
  }
  double now = 0, predicted_now = 0;  // each lane from 0: its length is its sum
  const auto count_bytes = [&](std::size_t bytes) {
    events_.push_back({{"ph", "C"},
                       {"name", "live bytes"},
                       {"ts", nanoseconds(now) / per_microsecond},
                       {"pid", process},
                       {"args", {{"bytes", bytes}}}});
  };
  for (const LedgerEntry* entry : ledger.in_order()) {
    count_bytes(entry->live_bytes);
    events_.push_back(call_event(*entry, rates, process, measured, now, entry->seconds));
    now += entry->seconds;
    if (!known) continue;
    const double least = rates.least_seconds(entry->flops, entry->bytes);
    events_.push_back(call_event(*entry, rates, process, predicted, predicted_now, least));
    predicted_now += least;
  }
  count_bytes(0);
}

void Trace::save(const std::filesystem::path& path, Backends& backends) {
  const Json trace = {{"displayTimeUnit", "ms"}, {"otherData", start_context(backends)}, {"traceEvents", events_}};
  replace_file(path, trace.dump() + "\n");
}

}  // namespace lamina::bench
