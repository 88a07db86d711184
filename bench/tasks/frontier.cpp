// Every algorithm of a network's convolutions and fully connected layers, measured in turns.

#include "frontier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "io/interrupt.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

constexpr double slow_factor = 10;  // times the fastest: far behind

/// Under which everything is measured: limits decide only between what was.
Choice demands_of(const Settings& settings) {
  Choice demands;
  demands.math = settings.choice.math;
  demands.workspace_limit = std::max(demands.workspace_limit, settings.choice.workspace_limit);
  return demands;
}

/// What the backend takes for the pass by rule, under the options' demands; empty where it refuses.
std::string algorithm_by_rule(Workshop& workshop, const Case& c, const Graph& graph, const Node& node, Pass pass) {
  Choice choice = workshop.settings().choice;
  choice.max_error = no_bound;
  try {
    Backend& backend = workshop.backend(c.backend);
    for (const Lowered::Step& step : backend.lower(spec_of(backend, graph, node, c, true), choice).steps)
      if (step.covers(pass)) return step.algorithm;
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
        demands_(demands_of(workshop.settings())) {}

  /// Nothing where it was interrupted before the last sample.
  std::optional<std::vector<Tried>> run(const FrontierEffort& effort) {
    const std::string rule = algorithm_by_rule(workshop_, case_, graph_, node_, pass_);
    algorithms_ = algorithms_of(workshop_, case_, graph_, node_, pass_);
    tried_.resize(algorithms_.size());
    runs_.resize(algorithms_.size());
    for (std::size_t i = 0; i < algorithms_.size(); ++i) {
      if (interrupted() != 0) return std::nullopt;
      tried_[i].algorithm = algorithms_[i].name;
      tried_[i].by_rule = algorithms_[i].name == rule;
      if (first_run(i, effort)) turn_.push_back(i);
    }
    drop_slow();
    if (!sample_in_turns(effort.samples)) return std::nullopt;
    return std::move(tried_);
  }

 private:
  std::unique_ptr<LayerRun> open(std::size_t i) {
    return open_layer(workshop_.backend(case_.backend), case_, graph_, node_, pass_, algorithms_[i], demands_,
                      reference_);
  }

  /// Whether it may be asked again. What does not fit beside the others is tried alone before it is said to be too
  /// large, and from then on there is one plan at a time.
  bool first_run(std::size_t i, const FrontierEffort& effort) {
    Tried& tried = tried_[i];
    for (;;) {
      try {
        if (hopeless(algorithms_[i], effort, tried)) return false;
        std::unique_ptr<LayerRun> run = open(i);
        tried.seconds = {run->first().seconds};
        tried.facts = run->facts();
        fastest_ = std::min(fastest_, tried.seconds.front());
        if (!one_at_a_time_) runs_[i] = std::move(run);
        return true;
      } catch (const Unsupported& error) {
        tried.refusal = error.what();
        tried.unsupported = true;
        return false;
      } catch (const OutOfMemory& error) {
        if (make_room()) continue;
        tried.refusal = error.what();
        return false;
      }
    }
  }

  /// Whether there were plans to let go of, so that another attempt has more room than the last.
  bool make_room() {
    if (std::all_of(runs_.begin(), runs_.end(), [](const auto& run) { return run == nullptr; })) return false;
    one_at_a_time_ = true;
    for (std::unique_ptr<LayerRun>& run : runs_) run.reset();
    return true;
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
    for (const Lowered::Step& step : backend.lower(spec_of(backend, graph_, node_, case_, true), named).steps)
      if (step.covers(pass_)) tried.facts.workspace_bytes = step.kernel->workspace_bytes();
    tried.seconds = {seconds};
    tried.of_one_image = true;
    return true;
  }

  void drop_slow() {
    std::erase_if(turn_, [&](std::size_t i) {
      const bool slow = tried_[i].seconds.front() > slow_factor * fastest_;
      if (slow)
        runs_[i].reset();
      else
        tried_[i].seconds.clear();  // the first run warmed up
      return slow;
    });
  }

  /// False where it was interrupted before the last one.
  bool sample_in_turns(int samples) {
    for (int sample = 0; sample < samples; ++sample) {
      for (const std::size_t i : turn_) {
        if (interrupted() != 0) return false;
        sample_once(i);
      }
      std::reverse(turn_.begin(), turn_.end());
    }
    return true;
  }

  /// One more time; an algorithm that finds no room any more, not even alone, is out, with the reason.
  void sample_once(std::size_t i) {
    Tried& tried = tried_[i];
    while (tried.refusal.empty()) {
      try {
        const std::unique_ptr<LayerRun> again = runs_[i] == nullptr ? open(i) : nullptr;
        LayerRun& run = again == nullptr ? *runs_[i] : *again;
        tried.seconds.push_back(run.run().seconds);
        take_facts(tried.facts, run.facts(), again != nullptr);
        return;
      } catch (const Unsupported& error) {
        tried.seconds.clear();
        tried.refusal = error.what();
        tried.unsupported = true;
      } catch (const OutOfMemory& error) {
        if (make_room()) continue;
        tried.seconds.clear();
        tried.refusal = error.what();
      }
    }
  }

  /// Bits that differed in an earlier plan differ still.
  static void take_facts(LayerFacts& facts, const LayerFacts& now, bool of_new_plan) {
    const LayerFacts before = facts;
    facts = now;
    if (!of_new_plan) return;
    facts.same_bits = before.same_bits && now.same_bits;
    facts.runs_compared += before.runs_compared;
  }

  Workshop& workshop_;
  const Case& case_;
  const Graph& graph_;
  const Node& node_;
  Pass pass_;
  Choice demands_;
  SharedReference reference_ = no_reference_yet(), reference_of_one_ = no_reference_yet();
  std::vector<NamedAlgorithm> algorithms_;
  std::vector<Tried> tried_;                     ///< by algorithm
  std::vector<std::unique_ptr<LayerRun>> runs_;  ///< by algorithm; null: not asked again, or made anew each time
  std::vector<std::size_t> turn_;                ///< of those that are asked again
  bool one_at_a_time_ = false;                   ///< the device has no room for all plans at once
  double fastest_ = std::numeric_limits<double>::infinity();
};

/// A layer and pass that algorithms compete for.
struct Contested {
  const Node* node;
  int layers;
  Pass pass;
  Cost work;
};

std::vector<Contested> contested(Workshop& workshop, const Case& c, const Graph& graph) {
  const std::vector<bool> wanted =
      wanted_gradients(graph, {.input_gradient = protocol_of(c, workshop.settings()).input_gradient});
  const auto wants_dx = [&](const Node* node) { return wanted[static_cast<std::size_t>(node->inputs.front())]; };
  std::vector<Contested> lines;
  for (const DistinctLayer& layer : distinct_layers(graph)) {
    const Node& node = layer.first();
    if (!has_reference(node.op)) continue;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_params}) {
      const int layers = pass == Pass::backward_data
                             ? static_cast<int>(std::count_if(layer.nodes.begin(), layer.nodes.end(), wants_dx))
                             : layer.count();
      if (layers > 0) lines.push_back({&node, layers, pass, cost(node.op, input_shapes(graph, node), pass, c.dtype)});
    }
  }
  return lines;
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

double guessed_seconds(Workshop& workshop, const Case& c, const FrontierEffort& effort) {
  constexpr double share_of_peak = 0.5;
  const double peak = workshop.peak_flops(c.backend, c.dtype);
  if (peak <= 0) return 0;
  const Graph graph = workshop.graph(c);
  double flops = 0;
  for (const Contested& line : contested(workshop, c, graph)) {
    const double algorithms = static_cast<double>(algorithms_of(workshop, c, graph, *line.node, line.pass).size());
    const double passes = line.pass == Pass::forward ? 1 : 3;  // a backward needs a forward, and may do both gradients
    flops += line.work.flops * passes * algorithms * (effort.samples + 1);
  }
  return flops / (share_of_peak * peak);
}

Frontier make_frontier(Workshop& workshop, const Case& c, const FrontierEffort& effort,
                       const std::function<void(const std::string&)>& progress) {
  const Graph graph = workshop.graph(c);
  const std::vector<Contested> lines = contested(workshop, c, graph);
  Frontier frontier{c, {}, lines.size()};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [node, layers, pass, work] = lines[i];
    progress(fmt::format("[{}/{}] {} of {} on {}, {}", i + 1, lines.size(), node->name, c.network, c.backend,
                         to_string(pass)));
    std::optional<std::vector<Tried>> tried = Contest(workshop, c, graph, *node, pass).run(effort);
    if (!tried) {
      frontier.cut_layer = node->name;
      break;
    }
    frontier.lines.push_back({node->name, layers, pass, work, std::move(*tried)});
  }
  return frontier;
}

}  // namespace lamina::bench
