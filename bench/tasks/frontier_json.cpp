// A frontier as an entry of a result file.

#include <algorithm>
#include <cmath>

#include "frontier.h"

namespace lamina::bench {
namespace {

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

Json frontier_json(const RowKey& key, const Frontier& frontier, const FastestNet& net, const Limits& limits) {
  Json json = {{"key", fields_of(key)}, {"complete", frontier.complete()}, {"lines_in_all", frontier.lines_in_all}};
  json["limits"]["deterministic"] = limits.deterministic;
  json["limits"]["workspace_bytes"] = limits.workspace_bytes;
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
