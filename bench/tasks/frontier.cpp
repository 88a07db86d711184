// Every algorithm of a network's convolutions and fully connected layers, measured in turns.

#include "frontier.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/io/interrupt.h"
#include "bench/measure/layers.h"
#include "bench/numbers/reference.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

/// Under which everything is measured: limits decide only between what was.
Choice demands_of(const Choice& limits) {
  Choice demands;
  demands.math = limits.math;
  demands.workspace_limit = std::max(demands.workspace_limit, limits.workspace_limit);
  return demands;
}

/// The algorithm that the backend takes for the pass by rule, under the options' demands; nothing where it refuses.
Lowered::Step step_by_rule(Session& session, const Config& c, const Graph& graph, const Node& node, Pass pass) {
  try {
    Backend& backend = session.backends.at(c.backend);
    const Lowered lowered = backend.lower(spec_of(backend, graph, node, c, true), session.plans.choice());
    const auto step = std::ranges::find_if(lowered.steps, [&](const auto& each) { return each.covers(pass); });
    if (step != lowered.steps.end()) return *step;
  } catch (const Unsupported&) {
    // Then there is no such line to mark.
  } catch (const OutOfMemory&) {
    // There is no line to mark here, either.
  }
  return {};
}

/// Checks what the algorithms of one layer and pass leave: error and bits.
class OutputCheck {
 public:
  explicit OutputCheck(Device& device) : device_(device) {}

  void inspect(Candidate& one, const Spec& spec, Pass pass, const Args& args) {
    const std::uint64_t bits = bits_of(device_, results_of(pass, args));
    if (one.measured.runs_compared++ == 0) {
      first_bits_[one.algorithm] = bits;
      if (!has_reference(spec.op)) return;
      auto& reference = references_[spec.y.shape.n];
      if (!reference) reference = reference_of(device_, spec.op, pass, args);
      one.measured.error = error_of(device_, pass, args, *reference).of_terms;
    }
    one.measured.same_bits = one.measured.same_bits && bits == first_bits_[one.algorithm];
  }

 private:
  Device& device_;
  std::map<std::string, std::uint64_t> first_bits_;
  std::map<int, std::optional<Reference>> references_;  ///< references by batch: all images, and one
};

/// The memory of the neediest algorithm for which there is enough. Algorithms that need more say what they lack.
Buffer memory_for(Device& device, std::vector<std::size_t> sizes) {
  for (; !sizes.empty(); sizes.pop_back()) {
    try {
      return {device, sizes.back()};
    } catch (const OutOfMemory&) {
      // The next one needs less.
    }
  }
  return {device, 0};
}

/// A layer and pass whose algorithms are timed.
struct TunedLayer {
  const Node* node;
  int layers;
  Pass pass;
  Cost work;
};

std::vector<TunedLayer> tuned_layers(Session& session, const Config& c, const Graph& graph) {
  const std::vector<bool> wanted =
      wanted_gradients(graph, {.input_gradient = session.plans.protocol(c.network).input_gradient});
  const auto wants_dx = [&](const Node* node) { return wanted[static_cast<std::size_t>(node->inputs.front())]; };
  std::vector<TunedLayer> lines;
  for (const DistinctLayer& layer : distinct_layers(graph)) {
    const Node& node = layer.first();
    if (!has_reference(node.op) && graph.nodes().size() > 2) continue;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_params}) {
      if (pass != Pass::forward && !session.plans.trains()) break;
      const int layers =
          pass == Pass::backward_data ? static_cast<int>(std::ranges::count_if(layer.nodes, wants_dx)) : layer.count();
      const Cost work = cost(node.op, input_shapes(graph, node), pass, c.dtype);
      if (layers > 0 && work.bytes > 0) lines.push_back({&node, layers, pass, work});
    }
  }
  return lines;
}

}  // namespace

double guessed_seconds(Session& session, const Config& c, const TuningRules& rules) {
  constexpr double share_of_peak = 0.5;
  const double peak = session.peaks.of(c.backend, c.dtype).flops_per_second;
  if (peak <= 0) return 0;
  const Graph graph = session.plans.graph(c);
  double flops = 0;
  for (const TunedLayer& line : tuned_layers(session, c, graph)) {
    const double algorithms =
        static_cast<double>(algorithms_of(session.backends, c, graph, *line.node, line.pass).size());
    const double passes = line.pass == Pass::forward ? 1 : 3;  // a backward needs a forward, and may do both gradients
    flops += line.work.flops * passes * algorithms * static_cast<double>(rules.race.rounds + 1);
  }
  return flops / (share_of_peak * peak);
}

Frontier make_frontier(Session& session, const Config& c, const TuningRules& rules,
                       const std::function<void(const std::string&)>& progress) {
  const Graph graph = session.plans.graph(c);
  const std::vector<TunedLayer> lines = tuned_layers(session, c, graph);
  Backend& backend = session.backends.at(c.backend);
  const Choice demands = demands_of(session.plans.choice());
  Frontier frontier{c, {}, lines.size()};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [node, layers, pass, work] = lines[i];
    progress(fmt::format("[{}/{}] {} of {} on {}, {}", i + 1, lines.size(), node->name, c.network, c.backend,
                         to_string(pass)));
    const Spec spec = spec_of(backend, graph, *node, c, true);
    OutputCheck check(backend.device());
    TuningRules line_rules = rules;
    const Lowered::Step by_rule = step_by_rule(session, c, graph, *node, pass);
    line_rules.rule = by_rule.algorithm;
    for (const NamedAlgorithm& known : algorithms_of(session.backends, c, graph, *node, pass))
      line_rules.further.push_back(known.name);
    line_rules.even_alone = true;
    line_rules.before_run = [] {
      if (interrupted() != 0) throw Interrupted();
    };
    line_rules.look = [&check, pass](Candidate& one, const Spec& unit, const Args& args) {
      check.inspect(one, unit, pass, args);
    };
    try {
      const Buffer buffer = memory_for(backend.device(), bytes_to_tune(backend, spec, pass, demands));
      frontier.lines.push_back({node->name, std::string(op_name(node->op)), layers, work, by_rule.reason,
                                tune(backend, spec, pass, demands, buffer.data(), buffer.size_bytes(), line_rules)});
    } catch (const Interrupted&) {
      frontier.cut_layer = node->name;
      break;
    }
  }
  return frontier;
}

}  // namespace lamina::bench
