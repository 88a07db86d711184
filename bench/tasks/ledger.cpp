// Ledgers: where a network's time goes. Passes timed whole and passes timed call by call take turns, so that both see
// the same state of the machine. Writes ledgers as a trace, too.

#include "ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "bench/context/context.h"
#include "bench/context/trace_file.h"
#include "bench/io/interrupt.h"
#include "lamina/statistics.h"

namespace lamina::bench {
namespace {

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

std::string medians_text(int passes, int asked) {
  const std::string text = passes == 1 ? "one pass" : fmt::format("medians of {} passes", passes);
  return passes == asked ? text : fmt::format("{}: interrupted before {}", text, asked);
}

/// The rates of a backend. `product`: whether to measure a large product, too. After an interrupt, missing rates are 0.
Rates rates_of(Peaks& peaks, const Config& c, bool product) {
  if (interrupted() != 0) return {};
  Rates rates{peaks.of(c.backend, c.dtype)};
  if (product && rates.units.in_registers && interrupted() == 0)
    rates.product_flops_per_second = peaks.product_flops_per_second(c.backend, c.dtype);
  if (interrupted() == 0) rates.memory = peaks.bytes_per_second(c.backend);
  return rates;
}

/// {(first node of a unit, whether it is the unit's backward): bytes in use in the arena}.
std::map<std::pair<int, bool>, std::size_t> live_bytes(const Plan& plan, Session& session, const Config& c) {
  std::map<std::pair<int, bool>, std::size_t> live;
  for (const LiveMemory& step : predict_live_memory(plan.graph(), session.backends.at(c.backend), plan.options()))
    live[{step.nodes.front(), step.backward}] = step.total();
  return live;
}

/// The rates, but the median of the peaks beside the passes replaces the peak that was measured once.
Rates at_moments(Rates rates, const std::vector<Moment>& moments) {
  std::vector<double> peaks;
  for (const Moment& moment : moments) peaks.push_back(moment.flops_per_second);
  if (!peaks.empty()) rates.units.flops_per_second = median_interval(peaks).middle;
  return rates;
}

double share_of_peak(const LedgerEntry& entry, const std::vector<Moment>& moments) {
  std::vector<double> shares;
  for (std::size_t pass = 0; pass < moments.size(); ++pass)
    shares.push_back(entry.flops / entry.samples[pass] / moments[pass].flops_per_second);
  return shares.empty() ? 0 : median_interval(shares).middle;
}

void set_known(Json& json, const char* name, double value) {
  if (value > 0) json[name] = value;
}

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

/// Measures the ledger of a network. After an interrupt, the running pass is the last pass.
Ledger make_ledger(Session& session, const Config& c, int passes) {
  Plan plan = [&] {
    const EndsPlanning ends;
    return Plan(session.plans.graph(c), session.backends.usable(c.backend), session.plans.options(c));
  }();
  if (const TensorFile weights = session.plans.weights(c); !weights.empty()) load_weights(plan, weights);
  Stopwatch whole(plan.backend().device());
  CallStopwatch by_call(plan);
  const bool trains = session.plans.trains();
  plan.forward();
  if (trains) plan.backward();

  Ledger ledger;
  std::vector<std::vector<double>> calls(plan.calls().size());
  PeakBeside beside(session.peaks, c.backend, c.dtype);
  beside.begin();
  for (int i = 0; i < passes && interrupted() == 0; ++i) {
    ledger.forward_samples.push_back(whole.time([&] { plan.forward(); }).seconds);
    if (trains) ledger.backward_samples.push_back(whole.time([&] { plan.backward(); }).seconds);
    std::vector<double> seconds = by_call.forward();
    const std::vector<double> rest = trains ? by_call.backward() : std::vector<double>();
    seconds.insert(seconds.end(), rest.begin(), rest.end());
    for (std::size_t call = 0; call < calls.size(); ++call) calls[call].push_back(seconds[call]);
    if (const Moment moment = beside.end(); moment.flops_per_second > 0) ledger.moments.push_back(moment);
  }
  if (ledger.passes() == 0) return ledger;
  if (std::ssize(ledger.moments) < ledger.passes()) ledger.moments.clear();  // a peak is missing: none is used
  ledger.forward_seconds = median_interval(ledger.forward_samples).middle;
  if (trains) ledger.backward_seconds = median_interval(ledger.backward_samples).middle;
  const auto live = live_bytes(plan, session, c);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = plan.calls()[i];
    LedgerEntry entry{layers_text(plan.graph(), call.nodes), call.passes,     call.algorithm,
                      median_interval(calls[i]).middle,      call.cost.flops, call.cost.bytes};
    for (const int node : call.nodes) entry.nodes.push_back(plan.graph().nodes()[static_cast<std::size_t>(node)].name);
    entry.op = op_name(plan.graph().nodes()[static_cast<std::size_t>(call.nodes.front())].op);
    entry.samples = calls[i];
    entry.share_of_peak = share_of_peak(entry, ledger.moments);
    entry.workspace_bytes = call.workspace_bytes;
    if (const auto at = live.find({call.nodes.front(), i >= plan.forward_calls()}); at != live.end())
      entry.live_bytes = at->second;
    ledger.entries.push_back(std::move(entry));
  }
  ledger.moved = plan_cost(plan);
  ledger.alone = graph_cost(plan.graph(), c.dtype, plan.options().input_gradient);
  if (!trains) ledger.alone.backward = {};
  return ledger;
}

/// A ledger as an entry of a result file. The calls are in the order of the plan. `asked`: requested number of passes.
Json ledger_json(const RowKey& key, const Ledger& ledger, const Rates& rates, int asked) {
  Json json = {{"key", key},
               {"passes", ledger.passes()},
               {"passes_asked", asked},
               {"forward_seconds", ledger.forward_seconds},
               {"forward_samples", ledger.forward_samples},
               {"bytes",
                {{"forward", ledger.moved.forward.bytes},
                 {"backward", ledger.moved.backward.bytes},
                 {"forward_alone", ledger.alone.forward.bytes},
                 {"backward_alone", ledger.alone.backward.bytes}}}};
  if (!ledger.backward_samples.empty()) {  // only in training
    json["backward_seconds"] = ledger.backward_seconds;
    json["backward_samples"] = ledger.backward_samples;
  }
  if (rates.units.flops_per_second > 0) json["peak_is"] = rates.units.description;
  set_known(json, "peak_flops_per_second", rates.units.flops_per_second);
  for (const Moment& moment : ledger.moments) {
    json["peak_samples"].push_back(moment.flops_per_second);
    json["core_mhz_samples"].push_back(moment.clock_mhz);
  }
  set_known(json, "product_flops_per_second", rates.product_flops_per_second);
  set_known(json, "memory_bytes_per_second", rates.memory);
  json["calls"] = Json::array();
  for (const LedgerEntry& entry : ledger.entries) {
    Json call = {{"call", json["calls"].size()},
                 {"layers", entry.layers},
                 {"node", entry.nodes.front()},
                 {"nodes", entry.nodes},
                 {"op", entry.op},
                 {"pass", entry.passes.size() > 1 ? "backward" : to_string(entry.passes.front())},
                 {"algorithm", entry.algorithm},
                 {"seconds", entry.seconds},
                 {"samples", entry.samples},
                 {"flops", entry.flops},
                 {"bytes", entry.bytes},
                 {"workspace_bytes", entry.workspace_bytes},
                 {"live_bytes", entry.live_bytes}};
    set_known(call, "share_of_peak", entry.share_of_peak);
    set_known(call, "predicted_seconds", rates.least_seconds(entry.flops, entry.bytes));
    json["calls"].push_back(std::move(call));
  }
  return json;
}

}  // namespace

void add_ledger(TraceFile& trace, const std::string& name, const Ledger& ledger, const Rates& rates) {
  const int process = trace.add_process(name);
  trace.add_lane(process, measured, "measured");
  const bool known = rates.least_seconds(1, 1) > 0;
  if (known) trace.add_lane(process, predicted, "least time at the measured rates");
  double now = 0, predicted_now = 0;  // each lane begins at 0, so its length is the sum of its times
  for (const LedgerEntry& entry : ledger.entries) {
    trace.add_bytes(process, "live bytes", now, entry.live_bytes);
    trace.add(process, measured, entry.layers, now, entry.seconds, facts_of(entry, rates, measured));
    now += entry.seconds;
    if (!known) continue;
    const double least = rates.least_seconds(entry.flops, entry.bytes);
    trace.add(process, predicted, entry.layers, predicted_now, least, facts_of(entry, rates, predicted));
    predicted_now += least;
  }
  trace.add_bytes(process, "live bytes", now, 0);
}

double Rates::least_seconds(double flops, double bytes) const {
  return units.flops_per_second > 0 && memory > 0 ? std::max(flops / units.flops_per_second, bytes / memory) : 0;
}

double Ledger::sum() const {
  return std::accumulate(entries.begin(), entries.end(), 0.0,
                         [](double seconds, const LedgerEntry& entry) { return seconds + entry.seconds; });
}

void ledgers(Session& session, const LedgerOptions& options, const Print& print) {
  const bool text = options.format == Format::text;
  TextTables tables(
      options.format, {"network", "backend", ">batch"},
      {"layer", "pass", "algorithm", ">ms", ">% of sum", ">GFLOP/s", ">% of peak", ">GB/s", ">% of memory"});
  ResultFile results(options.out);
  begin(results, session.backends, "ledgers");
  TraceFile trace;
  if (!options.trace.empty()) check_writable(options.trace);
  const std::vector<Config> all = configs(session.backends, options.configs, options.net, options.networks);
  for (const Config& c : all) session.plans.graph(c);  // fails for an unreadable network before measuring
  fmt::print(stderr, "Measuring what the backends reach here\n");
  for (const Config& c : all) rates_of(session.peaks, c, text);
  for (const Config& c : all) {
    const int passes = passes_on(c.backend, options.passes);
    Rates rates = rates_of(session.peaks, c, text);
    const double memory = rates.memory;
    Ledger ledger;
    if (interrupted() == 0) try {
        fmt::print(stderr, "[{}/{}] {}\n", &c - all.data() + 1, all.size(), to_string(c));
        ledger = make_ledger(session, c, passes);
      } catch (const Interrupted&) {
        // The ledger has no passes.
      }
    if (ledger.passes() < passes)
      fmt::print(stderr, "Interrupted: {} is {}\n", to_string(c),
                 ledger.passes() == 0 ? "not measured" : fmt::format("of {} passes, not {}", ledger.passes(), passes));
    if (ledger.passes() == 0) continue;
    rates = at_moments(rates, ledger.moments);
    const double peak = rates.units.flops_per_second;
    const std::vector<std::string> more = passes_flag(options.passes);
    const RowKey key = key_of("ledger", c, mode_name(options.plan.options.mode), options);
    if (results.wanted())
      results.add("ledgers", ledger_json(key, ledger, rates, passes), rerun("ledger", c, options, more));
    if (!options.trace.empty()) add_ledger(trace, row_name(key), ledger, rates);
    const double sum = ledger.sum();
    const std::vector<std::string> of = {c.network, c.backend, fmt::format("{}", c.batch)};
    const auto add = [&](const LedgerEntry& entry) {
      const double rate = entry.flops / entry.seconds, bandwidth = entry.bytes / entry.seconds;
      tables.add(of,
                 {entry.layers, passes_text(entry.passes), entry.algorithm, fmt::format("{:.3f}", 1e3 * entry.seconds),
                  percent(entry.seconds / sum), fmt::format("{:.1f}", 1e-9 * rate),
                  peak > 0 ? percent(entry.share_of_peak > 0 ? entry.share_of_peak : rate / peak) : "",
                  fmt::format("{:.1f}", 1e-9 * bandwidth), memory > 0 ? percent(bandwidth / memory) : ""});
    };
    const double moved = ledger.moved.forward.bytes + ledger.moved.backward.bytes;
    LedgerEntry whole{"whole", {}, "", ledger.whole(), 0, moved};
    std::vector<LedgerEntry> biggest_first = ledger.entries;
    std::ranges::stable_sort(biggest_first, std::greater(), &LedgerEntry::seconds);
    for (const LedgerEntry& entry : biggest_first) {
      whole.flops += entry.flops;
      add(entry);
    }
    tables.add(of, {"sum", "", "", fmt::format("{:.3f}", 1e3 * sum), percent(1), "", "", "", ""});
    add(whole);
    std::string reached =
        fmt::format("Peak: {:.1f} GFLOP/s, {}{}.\n", 1e-9 * peak, rates.units.description,
                    ledger.moments.empty() ? "" : "; measured beside each pass, the median; shares are of each pass'");
    if (rates.units.in_registers)
      reached += fmt::format("A large product reaches {:.1f} GFLOP/s: {}.\n", 1e-9 * rates.product_flops_per_second,
                             Peaks::product_description(c.backend));
    const std::string foot = fmt::format(
        "\nThe whole, timed without stamps: forward {:.3f} ms"
        "{}. The calls, each timed alone, sum to {:.1f} % of that.\n{}"
        "Memory: {:.1f} GB/s, measured; bytes are counted once per tensor and call: what stays in a cache exceeds it.\n"
        "Bytes moved: forward {:.2f} GB, backward {:.2f} GB; by each pass of each op alone {:.2f} GB and {:.2f} GB.\n",
        1e3 * ledger.forward_seconds,
        session.plans.trains() ? fmt::format(", backward {:.3f} ms", 1e3 * ledger.backward_seconds) : "",
        100 * sum / ledger.whole(), reached, 1e-9 * memory, 1e-9 * ledger.moved.forward.bytes,
        1e-9 * ledger.moved.backward.bytes, 1e-9 * ledger.alone.forward.bytes, 1e-9 * ledger.alone.backward.bytes);
    print(tables.take(fmt::format("{}, {}, {}, {}", to_string(c), to_string(c.dtype),
                                  mode_name(options.plan.options.mode), medians_text(ledger.passes(), passes)),
                      foot));
  }
  finish(results, session.peaks);
  if (!options.trace.empty()) trace.save(options.trace, session.backends);
}

}  // namespace lamina::bench
