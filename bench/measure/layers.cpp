// The cost of whole passes. The distinct layers of a network: each as a graph, as a unit of work, and with the
// algorithms that could do it. Timed passes of one layer with one algorithm.

#include "layers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "lamina/error.h"
#include "lamina/tuning.h"

namespace lamina::bench {
namespace {

void add(Cost& to, const Cost& more) {
  to.flops += more.flops;
  to.bytes += more.bytes;
}

void add_new(std::vector<NamedAlgorithm>& list, const std::vector<std::string>& names, bool listed) {
  for (const std::string& name : names)
    if (std::none_of(list.begin(), list.end(), [&](const NamedAlgorithm& known) { return known.name == name; }))
      list.push_back({name, listed});
}

}  // namespace

GraphCost graph_cost(const Graph& graph, DType dtype, bool input_gradient) {
  const std::vector<bool> wanted = wanted_gradients(graph, {.input_gradient = input_gradient});
  GraphCost sum;
  for (const Node& node : graph.nodes()) {
    if (node.inputs.empty()) continue;
    const std::vector<Shape> x = input_shapes(graph, node);
    add(sum.forward, cost(node.op, x, Pass::forward, dtype));
    if (!node.params.empty()) add(sum.backward, cost(node.op, x, Pass::backward_params, dtype));
    const bool wants_dx = std::ranges::any_of(node.inputs, [&](int i) { return wanted[static_cast<std::size_t>(i)]; });
    if (wants_dx) add(sum.backward, cost(node.op, x, Pass::backward_data, dtype));
  }
  return sum;
}

GraphCost plan_cost(const Plan& plan) {
  GraphCost sum;
  for (std::size_t i = 0; i < plan.calls().size(); ++i)
    add(i < plan.forward_calls() ? sum.forward : sum.backward, plan.calls()[i].cost);
  return sum;
}

std::string layers_text(const Graph& graph, const std::vector<int>& nodes) {
  const auto name = [&](int node) { return graph.nodes()[static_cast<std::size_t>(node)].name; };
  return fmt::format("{}", fmt::join(nodes | std::views::transform(name), " + "));
}

std::string passes_text(const std::vector<Pass>& passes) {
  const auto name = [](Pass pass) { return to_string(pass); };
  return fmt::format("{}", fmt::join(passes | std::views::transform(name), " + "));
}

std::vector<DistinctLayer> distinct_layers(const Graph& graph) {
  std::vector<DistinctLayer> found;
  for (const Node& node : graph.nodes()) {
    if (node.inputs.empty()) continue;
    const std::vector<Shape> x = input_shapes(graph, node);
    const auto same = std::find_if(found.begin(), found.end(), [&](const DistinctLayer& other) {
      return other.first().op == node.op && input_shapes(graph, other.first()) == x;
    });
    if (same != found.end())
      same->nodes.push_back(&node);
    else
      found.push_back({{&node}});
  }
  return found;
}

Graph alone(const Graph& graph, const Node& node) {
  Graph one(node.name);
  std::vector<Value> x;
  for (const Shape& shape : input_shapes(graph, node)) x.push_back(one.input(shape, fmt::format("x{}", x.size())));
  apply(node.op, x, node.name);
  return one;
}

Spec spec_of(const Backend& backend, const Graph& graph, const Node& node, const Config& c, bool wants_dx) {
  const Options options{.dtype = c.dtype, .layout = c.layout, .input_gradient = wants_dx};
  return planned_units(alone(graph, node), backend, options).front().spec;
}

std::vector<NamedAlgorithm> algorithms_of(Backends& backends, const Config& c, const Graph& graph, const Node& node,
                                          Pass pass) {
  std::vector<NamedAlgorithm> list;
  const bool wants_dx = pass == Pass::backward_data;
  try {
    const Backend& backend = backends.at(c.backend);
    add_new(list, backend.algorithms(spec_of(backend, graph, node, c, wants_dx), pass), true);
    for (const DistinctLayer& other : distinct_layers(graph))
      if (other.first().op.index() == node.op.index())
        add_new(list, backend.algorithms(spec_of(backend, graph, other.first(), c, wants_dx), pass), false);
    if (std::holds_alternative<Conv>(node.op)) {  // `plain` is a layer that most algorithms accept
      const Graph plain = Layer{.op = Conv{.channels = 64, .kernel = 3, .pad = 1}, .x = {c.batch, 64, 56, 56}}.graph();
      add_new(list, backend.algorithms(spec_of(backend, plain, plain.nodes().back(), c, wants_dx), pass), false);
    }
  } catch (const Unsupported&) {
    return {{"none"}};
  }
  return list;
}

Options layer_options(const Config& c, const Node& node, Pass pass, const std::string& algorithm,
                      const Choice& demands) {
  Options options{.dtype = c.dtype, .layout = c.layout, .input_gradient = pass == Pass::backward_data};
  Choice& choice = options.choice_of[node.name] = demands;
  choice.measure = choice.joins_gradients = false;  // there is nothing to choose: other passes are not timed
  if (pass <= Pass::backward_data) choice.algorithm[static_cast<std::size_t>(pass)] = algorithm;
  return options;
}

LayerRun::LayerRun(Backend& backend, const Graph& graph, const Options& options, Pass pass,
                   const SharedReference& shared, bool cold)
    : pass_(pass), plan_(graph, backend, options), stopwatch_(plan_, true, cold) {
  const auto call = std::ranges::find_if(plan_.calls(), [&](const Call& c) { return c.covers(pass); });
  if (call == plan_.calls().end())
    throw Unsupported(fmt::format("nothing to run: {} of {} is a view in the plan", to_string(pass), graph.name()));
  facts_.call = *call;
  args_ = &plan_.args(static_cast<std::size_t>(call - plan_.calls().begin()));

  const double seconds = stopwatch_.pass(pass_).seconds;
  Device& device = plan_.backend().device();
  if (std::optional<Reference>& reference = *shared; has_reference(graph.nodes().back().op)) {
    if (!reference) reference = reference_of(device, graph.nodes().back().op, pass_, *args_);
    facts_.error = error_of(device, pass_, *args_, *reference);
  }
  look(seconds);
}

std::vector<Sample> LayerRun::pass() {
  const Sample sample = stopwatch_.pass(pass_);
  look(sample.seconds);
  return {sample};
}

std::map<std::string, double> LayerRun::counters() const {
  std::map<std::string, double> counters = {
      {"workspace_MiB", static_cast<double>(facts_.call.workspace_bytes) / mebibyte},
      {"deterministic", facts_.call.deterministic ? 1 : 0},
      {"same_bits", facts_.same_bits ? 1 : 0},
      {"runs_compared", facts_.runs_compared}};
  if (std::isfinite(facts_.call.max_error)) counters["guaranteed_error"] = facts_.call.max_error;
  if (!facts_.error) return counters;
  counters["error"] = facts_.error->of_terms;
  counters["error_of_largest"] = facts_.error->of_largest;
  counters["error_elements"] = static_cast<double>(facts_.error->elements);
  return counters;
}

std::string to_string(const LayerFacts& facts) {
  const auto& [call, runs_compared, same_bits, error] = facts;
  std::string text = fmt::format("{}, {}", to_string(call.math), call.deterministic ? "deterministic" : "any order");
  text += fmt::format(", {} in {} runs", same_bits ? "bit-identical" : "not bit-identical", runs_compared);
  if (error) text += fmt::format(", error {:.1e} of the terms", error->of_terms);
  if (!call.tied.empty()) text += fmt::format(", tied with {}", fmt::join(call.tied, ", "));
  return text;
}

void LayerRun::enqueue() {
  plan_.forward();
  if (pass_ != Pass::forward) plan_.backward();
}

void LayerRun::look(double seconds) {
  inspect_timed_run(
      plan_.backend().device(), facts_.runs_compared, seconds, [this] { enqueue(); },
      [this] {
        const std::uint64_t bits = bits_of(plan_.backend().device(), results_of(pass_, *args_));
        if (facts_.runs_compared++ == 0) first_bits_ = bits;
        facts_.same_bits = facts_.same_bits && bits == first_bits_;
      });
}

std::unique_ptr<LayerRun> open_layer(Backend& backend, const Config& c, const Graph& graph, const Node& node, Pass pass,
                                     const NamedAlgorithm& algorithm, const Choice& demands,
                                     const SharedReference& reference, bool cold) {
  try {
    return std::make_unique<LayerRun>(backend, alone(graph, node),
                                      layer_options(c, node, pass, algorithm.name, demands), pass, reference, cold);
  } catch (const UsageError& error) {
    if (algorithm.listed) throw;
    throw Unsupported(error.what());
  }
}

}  // namespace lamina::bench
