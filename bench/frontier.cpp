// Every algorithm of a network's convolutions and fully connected layers, measured in turns.

#include "frontier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

constexpr double slow_factor = 10;  // times the fastest: far behind

/// Under which everything is measured: limits decide only between what was.
Choice demands_of(const BenchOptions& options) {
  Choice demands;
  demands.math = options.choice.math;
  demands.workspace_limit = std::max(demands.workspace_limit, options.choice.workspace_limit);
  return demands;
}

bool covers(const Lowered::Step& step, Pass pass) {
  return std::find(step.covers.begin(), step.covers.end(), pass) != step.covers.end();
}

/// What the backend takes for the pass by rule, under the options' demands; empty where it refuses.
std::string algorithm_by_rule(Workshop& workshop, const Case& c, const Spec& spec, Pass pass) {
  Choice choice = workshop.options().choice;
  choice.max_error = no_bound;
  try {
    for (const Lowered::Step& step : workshop.backend(c.backend).lower(spec, choice).steps)
      if (covers(step, pass)) return step.algorithm;
  } catch (const Unsupported&) {
    // Then there is no such line to mark.
  } catch (const OutOfMemory&) {
    // Likewise.
  }
  return {};
}

/// Everything that is tried for one layer and pass.
class Contest {
 public:
  Contest(Workshop& workshop, const Case& c, const Graph& graph, const Node& node, Pass pass)
      : workshop_(workshop),
        case_(c),
        graph_(graph),
        node_(node),
        pass_(pass),
        demands_(demands_of(workshop.options())) {}

  std::vector<Tried> run(const FrontierEffort& effort) {
    const std::string rule = algorithm_by_rule(workshop_, case_, spec_of(graph_, node_, case_, true), pass_);
    for (const NamedAlgorithm& algorithm : algorithms_of(workshop_, case_, graph_, node_, pass_)) {
      tried_.emplace_back();
      tried_.back().algorithm = algorithm.name;
      tried_.back().by_rule = algorithm.name == rule;
      runs_.push_back(first_run(algorithm, effort, tried_.back()));
    }
    drop_slow();
    sample_in_turns(effort.samples);
    return std::move(tried_);
  }

 private:
  /// Nothing, and the reason in `tried`, where it cannot run; nothing where one image told enough.
  std::unique_ptr<LayerRun> first_run(const NamedAlgorithm& algorithm, const FrontierEffort& effort, Tried& tried) {
    try {
      if (hopeless(algorithm, effort, tried)) return nullptr;
      std::unique_ptr<LayerRun> run =
          open_layer(workshop_.backend(case_.backend), case_, graph_, node_, pass_, algorithm, demands_, reference_);
      tried.seconds = {run->first().seconds};
      tried.facts = run->facts();
      fastest_ = std::min(fastest_, tried.seconds.front());
      return run;
    } catch (const Unsupported& error) {
      tried.refusal = error.what();
      tried.unsupported = true;
    } catch (const OutOfMemory& error) {
      tried.refusal = error.what();
    }
    return nullptr;
  }

  /// Whether one image says that the algorithm is far behind and would take too long; then `tried` has what it said.
  bool hopeless(const NamedAlgorithm& algorithm, const FrontierEffort& effort, Tried& tried) {
    if (case_.batch == 1 || !std::isfinite(fastest_)) return false;
    Case one = case_;
    one.batch = 1;
    const Graph graph = workshop_.graph(one);
    Backend& backend = workshop_.backend(case_.backend);
    const std::unique_ptr<LayerRun> run =
        open_layer(backend, one, graph, graph.node(node_.name), pass_, algorithm, demands_, reference_of_one_);
    const double seconds = case_.batch * run->first().seconds;
    if (seconds < effort.longest_seconds || seconds < slow_factor * fastest_) return false;
    Choice named = demands_;
    named.algorithm[static_cast<std::size_t>(pass_)] = algorithm.name;
    tried.facts = run->facts();
    for (const Lowered::Step& step : backend.lower(spec_of(graph_, node_, case_, true), named).steps)
      if (covers(step, pass_)) tried.facts.workspace_bytes = step.kernel->workspace_bytes();
    tried.seconds = {seconds};
    tried.of_one_image = true;
    return true;
  }

  void drop_slow() {
    for (std::size_t i = 0; i < tried_.size(); ++i) {
      if (runs_[i] == nullptr) continue;
      if (tried_[i].seconds.front() > slow_factor * fastest_) {
        runs_[i].reset();
        continue;
      }
      tried_[i].seconds.clear();  // the first run warmed up
      turn_.push_back(i);
    }
  }

  /// One more time; an algorithm that finds no room any more is out, with the reason.
  void sample_once(std::size_t i) {
    if (runs_[i] == nullptr) return;
    try {
      tried_[i].seconds.push_back(runs_[i]->run().seconds);
    } catch (const OutOfMemory& error) {
      tried_[i].seconds.clear();
      tried_[i].refusal = error.what();
      runs_[i].reset();
    }
  }

  void sample_in_turns(int samples) {
    for (int sample = 0; sample < samples; ++sample) {
      for (const std::size_t i : turn_) sample_once(i);
      std::reverse(turn_.begin(), turn_.end());
    }
    for (const std::size_t i : turn_)
      if (runs_[i] != nullptr) tried_[i].facts = runs_[i]->facts();
  }

  Workshop& workshop_;
  const Case& case_;
  const Graph& graph_;
  const Node& node_;
  Pass pass_;
  Choice demands_;
  SharedReference reference_ = no_reference_yet(), reference_of_one_ = no_reference_yet();
  std::vector<Tried> tried_;
  std::vector<std::unique_ptr<LayerRun>> runs_;  ///< by algorithm tried; null: it is not asked again
  std::vector<std::size_t> turn_;
  double fastest_ = std::numeric_limits<double>::infinity();
};

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

Frontier make_frontier(Workshop& workshop, const Case& c, const FrontierEffort& effort,
                       const std::function<void(const std::string&)>& progress) {
  const Graph graph = workshop.graph(c);
  const std::vector<bool> wanted = wanted_gradients(graph, protocol_of(c, workshop.options()).input_gradient);
  const auto wants_dx = [&](const Node* node) { return wanted[static_cast<std::size_t>(node->inputs.front())]; };
  Frontier frontier{c, {}};
  for (const DistinctLayer& layer : distinct_layers(graph)) {
    const Node& node = layer.first();
    if (!has_reference(node.op)) continue;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_params}) {
      FrontierLine line{node.name, layer.count(), pass, cost(node.op, input_shapes(graph, node), pass, c.dtype), {}};
      if (pass == Pass::backward_data)
        line.layers = static_cast<int>(std::count_if(layer.nodes.begin(), layer.nodes.end(), wants_dx));
      if (line.layers == 0) continue;
      progress(fmt::format("{} of {} on {}, {}", node.name, c.network, c.backend, to_string(pass)));
      line.tried = Contest(workshop, c, graph, node, pass).run(effort);
      frontier.lines.push_back(std::move(line));
    }
  }
  return frontier;
}

}  // namespace lamina::bench
