// The algorithms that no other beats, the fastest choices under limits, and the whole network timed with them.
// A frontier as an entry of a result file.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/io/interrupt.h"
#include "bench/io/text.h"
#include "bench/measure/layers.h"
#include "bench/numbers/reference.h"
#include "bench/timing/stopwatch.h"
#include "frontier.h"
#include "lamina/choice_cache.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

/// 0: tied. Who left the race was clearly slower than its best, in rounds that may be too few to show it again.
int by_time(const Measurement& a, const Measurement& b) {
  const Interval ratio = ratio_interval(b.seconds, a.seconds);
  if (ratio.high < 1) return -1;
  if (ratio.low > 1) return 1;
  return static_cast<int>(b.finished) - static_cast<int>(a.finished);
}

using Json = nlohmann::ordered_json;

void set_finite(Json& json, const char* name, double value) {
  if (std::isfinite(value)) json[name] = value;
}

Json candidate_json(const LayerTuning& tuning, std::size_t i, const LayerTuning::Picked& picked, bool stays) {
  const Candidate& one = tuning.candidates[i];
  Json json = {{"algorithm", one.algorithm}, {"by_rule", one.by_rule}};
  if (!one.ran()) {
    json["failure"] = one.refused;
    json["unsupported"] = one.unsupported;
    return json;
  }
  const Measurement& its = one.measured;
  const Interval seconds = median_interval(its.seconds);
  json["seconds"] = seconds.middle;
  json["low"] = seconds.low;
  json["high"] = seconds.high;
  json["samples"] = its.seconds;
  json["finished"] = its.finished;
  json["of_one_image"] = its.of_one_image;
  json["workspace_bytes"] = its.workspace_bytes;
  json["math"] = to_string(its.math);
  set_finite(json, "error", its.error);
  set_finite(json, "guaranteed_error", its.guaranteed_error);
  json["deterministic"] = its.deterministic;
  json["same_bits"] = its.same_bits;
  json["runs_compared"] = its.runs_compared;
  json["on_frontier"] = stays;
  json["picked"] = picked.best == i;
  json["tied"] = std::find(picked.ties.begin(), picked.ties.end(), i) != picked.ties.end();
  return json;
}

}  // namespace

bool is_deterministic(const Measurement& one) { return one.deterministic && one.same_bits; }

bool within(const Measurement& one, const Choice& limits) {
  return one.workspace_bytes <= limits.workspace_limit && one.error <= limits.max_error &&
         (is_deterministic(one) || !limits.deterministic);
}

LayerTuning::Picked pick_within(const LayerTuning& tuning, const Choice& limits) {
  return pick(tuning.candidates, [&](const Candidate& one) { return within(one.measured, limits); });
}

bool dominates(const Measurement& a, const Measurement& b) {
  if (a.workspace_bytes > b.workspace_bytes || !(a.error <= b.error)) return false;
  if (is_deterministic(b) && !is_deterministic(a)) return false;
  if (const int order = by_time(a, b); order != 0) return order < 0;
  return a.workspace_bytes < b.workspace_bytes || a.error < b.error || (is_deterministic(a) && !is_deterministic(b));
}

std::vector<bool> not_beaten(const std::vector<Candidate>& candidates) {
  std::vector<bool> stays;
  for (const Candidate& one : candidates)
    stays.push_back(one.ran() && std::none_of(candidates.begin(), candidates.end(), [&](const Candidate& other) {
                      return other.ran() && dominates(other.measured, one.measured);
                    }));
  return stays;
}

FastestNet fastest_net(const Frontier& frontier, const Choice& limits) {
  FastestNet net;
  bool rule_is_known = true;
  const auto seconds = [](const FrontierLine& line, const Candidate& one) {
    return line.layers * median_interval(one.measured.seconds).middle;
  };
  for (const FrontierLine& line : frontier.lines) {
    const std::vector<Candidate>& all = line.tuning.candidates;
    const auto rule = std::find_if(all.begin(), all.end(), [](const Candidate& c) { return c.by_rule && c.ran(); });
    rule_is_known = rule_is_known && rule != all.end();
    if (rule != all.end()) net.by_rule_seconds += seconds(line, *rule);
    const LayerTuning::Picked& picked = net.picks.emplace_back(pick_within(line.tuning, limits));
    if (!picked.best) {
      net.missing.push_back(fmt::format("{}, {}", line.node, to_string(line.pass())));
      continue;
    }
    const Candidate& best = all[*picked.best];
    net.as_by_rule = net.as_by_rule && best.by_rule;
    (line.pass() == Pass::forward ? net.forward_seconds : net.backward_seconds) += seconds(line, best);
  }
  if (!rule_is_known) net.by_rule_seconds = 0;
  return net;
}

std::map<std::string, Choice> choices_of(Session& session, const Frontier& frontier, const FastestNet& net) {
  const Graph graph = session.plans.graph(frontier.config);
  std::map<std::string, Algorithms> by_layer;
  for (std::size_t i = 0; i < frontier.lines.size(); ++i) {
    const FrontierLine& line = frontier.lines[i];
    if (const auto& best = net.picks[i].best)
      by_layer[line.node][static_cast<std::size_t>(line.pass())] = line.tuning.candidates[*best].algorithm;
  }
  std::map<std::string, Choice> choices;
  for (const DistinctLayer& layer : distinct_layers(graph)) {
    const auto found = by_layer.find(layer.first().name);
    if (found == by_layer.end()) continue;
    Choice choice = session.plans.choice();
    choice.algorithm = found->second;
    for (const Node* node : layer.nodes) choices[node->name] = choice;
  }
  return choices;
}

std::string why_not_planned(Session& session, const Config& c, const std::map<std::string, Choice>& choices) {
  const Graph graph = session.plans.graph(c);
  Backend& backend = session.backends.at(c.backend);
  Options options = session.plans.options(c);
  options.choice_of = choices;
  std::string why;
  try {
    predict_memory(graph, backend, options);
    return {};
  } catch (const Error& error) {
    why = error.what();
  }
  Choice unlimited = options.choice;
  unlimited.workspace_limit = std::numeric_limits<std::size_t>::max();
  std::vector<std::string> needs, refused;
  for (const DistinctLayer& layer : distinct_layers(graph)) {
    if (has_reference(layer.first().op)) continue;
    try {
      std::size_t most = 0;
      for (const Lowered::Step& step : backend.lower(spec_of(backend, graph, layer.first(), c, true), unlimited).steps)
        most = std::max(most, step.kernel->workspace_bytes());
      if (most > options.choice.workspace_limit)
        needs.push_back(fmt::format("{} {}", layer.first().name, bytes_text(static_cast<double>(most))));
    } catch (const Error&) {
      refused.push_back(layer.first().name);
    }
  }
  if (!needs.empty()) why += fmt::format(". Layers without a choice need: {}", fmt::join(needs, ", "));
  if (!refused.empty()) why += fmt::format(". Failed with any workspace: {}", fmt::join(refused, ", "));
  return why;
}

WholeNet time_whole(Session& session, const Config& c, const std::map<std::string, Choice>& choices, int samples) {
  Backend& backend = session.backends.at(c.backend);
  const Options by_rule = session.plans.options(c);
  Options picked = by_rule;
  picked.choice_of = choices;
  Plan plans[] = {Plan(session.plans.graph(c), backend, by_rule), Plan(session.plans.graph(c), backend, picked)};
  Stopwatch stopwatch(backend.device());
  Rounds rounds[2];
  for (int round = 0; round <= samples; ++round) {
    for (const std::size_t k : {0U, 1U}) {
      if (interrupted() != 0) return {};
      const std::size_t i = round % 2 == 0 ? k : 1 - k;
      const double seconds = stopwatch
                                 .time([&] {
                                   plans[i].forward();
                                   if (session.plans.trains()) plans[i].backward();
                                 })
                                 .seconds;
      if (round > 0) rounds[i].push_back(seconds);  // the first round warms up
    }
  }
  const auto& [ruled, its] = rounds;
  return {median_interval(its), median_interval(ruled), ratio_interval(ruled, its), its.size()};
}

Json frontier_json(const RowKey& key, const Frontier& frontier, const FastestNet& net, const Choice& limits) {
  Json json = {{"key", key}, {"complete", frontier.complete()}, {"lines_in_all", frontier.lines_in_all}};
  json["limits"]["deterministic"] = limits.deterministic;
  json["limits"]["workspace_bytes"] = limits.workspace_limit;
  set_finite(json["limits"], "max_error", limits.max_error);
  json["lines"] = Json::array();
  for (std::size_t l = 0; l < frontier.lines.size(); ++l) {
    const FrontierLine& line = frontier.lines[l];
    const std::vector<bool> stays = not_beaten(line.tuning.candidates);
    Json algorithms = Json::array();
    for (std::size_t i = 0; i < line.tuning.candidates.size(); ++i)
      algorithms.push_back(candidate_json(line.tuning, i, net.picks[l], stays[i]));
    json["lines"].push_back({{"node", line.node},
                             {"layers", line.layers},
                             {"op", line.op},
                             {"pass", to_string(line.pass())},
                             {"flops", line.work.flops},
                             {"bytes", line.work.bytes},
                             {"reason", line.reason},
                             {"algorithms", std::move(algorithms)}});
  }
  if (!frontier.complete()) return json;
  json["fastest"] = {{"forward_seconds", net.forward_seconds}, {"backward_seconds", net.backward_seconds}};
  if (net.by_rule_seconds > 0) json["fastest"]["by_rule_seconds"] = net.by_rule_seconds;
  json["fastest"]["missing"] = net.missing;
  return json;
}

}  // namespace lamina::bench
