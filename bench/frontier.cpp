// Every algorithm of a network's convolutions and fully connected layers, measured in turns.

#include "frontier.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

constexpr double slow_factor = 10;  // times the fastest: sampled once

/// Under which everything is measured: limits decide only between what was.
Choice demands_of(const BenchOptions& options) {
  Choice demands;
  demands.math = options.choice.math;
  demands.workspace_limit = std::max(demands.workspace_limit, options.choice.workspace_limit);
  return demands;
}

/// What the backend takes for the pass by rule, under the options' demands; empty where it refuses.
std::string algorithm_by_rule(Workshop& workshop, const Case& c, const Spec& spec, Pass pass) {
  Choice choice = workshop.options().choice;
  choice.max_error = no_bound;
  try {
    for (const Lowered::Step& step : workshop.backend(c.backend).lower(spec, choice).steps)
      if (std::find(step.covers.begin(), step.covers.end(), pass) != step.covers.end()) return step.algorithm;
  } catch (const Unsupported&) {
    // Then there is no such line to mark.
  }
  return {};
}

/// An algorithm's first run; nothing, and the reason in `tried`, where it cannot run.
std::unique_ptr<LayerRun> open(const std::function<std::unique_ptr<LayerRun>()>& make, Tried& tried) {
  try {
    std::unique_ptr<LayerRun> run = make();
    tried.seconds = {run->first().seconds};
    tried.facts = run->facts();
    return run;
  } catch (const Unsupported& error) {
    tried.refusal = error.what();
    tried.unsupported = true;
  } catch (const OutOfMemory& error) {
    tried.refusal = error.what();
  }
  return nullptr;
}

void sample_in_turns(std::vector<Tried>& tried, std::vector<std::unique_ptr<LayerRun>>& runs, int samples) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Tried& one : tried)
    if (one.ran()) fastest = std::min(fastest, one.seconds.front());
  std::vector<std::size_t> turn;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    if (runs[i] == nullptr) continue;
    if (tried[i].seconds.front() > slow_factor * fastest) {
      runs[i].reset();
      continue;
    }
    tried[i].seconds.clear();  // the first run warmed up
    turn.push_back(i);
  }
  for (int sample = 0; sample < samples; ++sample) {
    for (const std::size_t i : turn) tried[i].seconds.push_back(runs[i]->run().seconds);
    std::reverse(turn.begin(), turn.end());
  }
  for (const std::size_t i : turn) tried[i].facts = runs[i]->facts();
}

}  // namespace

Offer Tried::offer() const {
  return {median_interval(seconds), facts.workspace_bytes, facts.error ? facts.error->of_terms : no_bound,
          facts.deterministic && facts.same_bits};
}

std::vector<std::size_t> FrontierLine::ran() const {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (tried[i].ran()) places.push_back(i);
  return places;
}

std::vector<Offer> FrontierLine::offers() const {
  std::vector<Offer> offers;
  for (const std::size_t i : ran()) offers.push_back(tried[i].offer());
  return offers;
}

Frontier make_frontier(Workshop& workshop, const Case& c, int samples,
                       const std::function<void(const std::string&)>& progress) {
  const Graph graph = workshop.graph(c);
  const std::vector<bool> wanted = wanted_gradients(graph, protocol_of(c, workshop.options()).input_gradient);
  const Choice demands = demands_of(workshop.options());
  Frontier frontier{c, {}};
  const auto wants_dx = [&](const Node* node) { return wanted[static_cast<std::size_t>(node->inputs.front())]; };
  for (const DistinctLayer& layer : distinct_layers(graph)) {
    const Node& node = layer.first();
    if (!has_reference(node.op)) continue;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_params}) {
      FrontierLine line{node.name, layer.count(), pass, cost(node.op, input_shapes(graph, node), pass, c.dtype), {}};
      if (pass == Pass::backward_data)
        line.layers = static_cast<int>(std::count_if(layer.nodes.begin(), layer.nodes.end(), wants_dx));
      if (line.layers == 0) continue;
      progress(fmt::format("{} of {} on {}, {}", node.name, c.network, c.backend, to_string(pass)));
      const std::string rule = algorithm_by_rule(workshop, c, spec_of(graph, node, c, true), pass);
      const SharedReference reference = no_reference_yet();
      std::vector<std::unique_ptr<LayerRun>> runs;
      for (const NamedAlgorithm& algorithm : algorithms_of(workshop, c, graph, node, pass)) {
        Tried& tried = line.tried.emplace_back();
        tried.algorithm = algorithm.name;
        tried.by_rule = algorithm.name == rule;
        runs.push_back(open(
            [&] {
              return open_layer(workshop.backend(c.backend), c, graph, node, pass, algorithm, demands, reference);
            },
            tried));
      }
      sample_in_turns(line.tried, runs, samples);
      frontier.lines.push_back(std::move(line));
    }
  }
  return frontier;
}

Picked pick_fastest(const FrontierLine& line, const Limits& limits) {
  const std::vector<std::size_t> places = line.ran();
  const std::vector<Offer> offers = line.offers();
  Picked picked;
  const std::optional<std::size_t> best = fastest(offers, limits);
  if (!best) return picked;
  picked.best = places[*best];
  for (const std::size_t i : tied_with(offers, limits, *best)) picked.ties.push_back(places[i]);
  return picked;
}

FastestNet fastest_net(const Frontier& frontier, const Limits& limits) {
  FastestNet net;
  bool rule_is_known = true;
  for (const FrontierLine& line : frontier.lines) {
    const Picked& picked = net.picks.emplace_back(pick_fastest(line, limits));
    const auto rule =
        std::find_if(line.tried.begin(), line.tried.end(), [](const Tried& t) { return t.by_rule && t.ran(); });
    rule_is_known = rule_is_known && rule != line.tried.end();
    if (rule != line.tried.end()) net.by_rule_seconds += line.layers * rule->offer().seconds.middle;
    if (!picked.best) {
      net.missing.push_back(fmt::format("{}, {}", line.node, to_string(line.pass)));
      continue;
    }
    const Tried& best = line.tried[*picked.best];
    net.as_by_rule = net.as_by_rule && best.by_rule;
    (line.pass == Pass::forward ? net.forward_seconds : net.backward_seconds) +=
        line.layers * best.offer().seconds.middle;
  }
  if (!rule_is_known) net.by_rule_seconds = 0;
  return net;
}

}  // namespace lamina::bench
