// Operations and bytes of whole passes, and the distinct layers of a network: each as a graph, as a unit of work, and
// with the algorithms that could do it.

#include "layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

void add(Cost& to, const Cost& more) {
  to.flops += more.flops;
  to.bytes += more.bytes;
}

/// A convolution that every algorithm for convolutions ought to take.
Graph plain_convolution(const Config& c) {
  return Layer{.op = Conv{.channels = 64, .kernel = 3, .pad = 1}, .x = {c.batch, 64, 56, 56}}.graph();
}

void add_new(std::vector<NamedAlgorithm>& list, const std::vector<std::string>& names, bool listed) {
  for (const std::string& name : names)
    if (std::none_of(list.begin(), list.end(), [&](const NamedAlgorithm& known) { return known.name == name; }))
      list.push_back({name, listed});
}

}  // namespace

std::vector<Shape> input_shapes(const Graph& graph, const Node& node) {
  std::vector<Shape> shapes;
  for (const int i : node.inputs) shapes.push_back(graph.nodes()[static_cast<std::size_t>(i)].shape);
  return shapes;
}

GraphCost graph_cost(const Graph& graph, DType dtype, bool input_gradient) {
  const std::vector<bool> wanted = wanted_gradients(graph, {.input_gradient = input_gradient});
  GraphCost sum;
  for (const Node& node : graph.nodes()) {
    if (node.inputs.empty()) continue;
    const std::vector<Shape> x = input_shapes(graph, node);
    add(sum.forward, cost(node.op, x, Pass::forward, dtype));
    if (!node.params.empty()) add(sum.backward, cost(node.op, x, Pass::backward_params, dtype));
    const bool wants_dx =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](int i) { return wanted[static_cast<std::size_t>(i)]; });
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
  std::vector<std::string_view> names;
  for (const int node : nodes) names.emplace_back(graph.nodes()[static_cast<std::size_t>(node)].name);
  return fmt::format("{}", fmt::join(names, " + "));
}

std::string passes_text(const std::vector<Pass>& passes) {
  std::vector<std::string_view> names;
  for (const Pass pass : passes) names.push_back(to_string(pass));
  return fmt::format("{}", fmt::join(names, " + "));
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
  Options options;
  options.dtype = c.dtype;
  options.layout = c.layout;
  options.input_gradient = wants_dx;
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
    if (std::holds_alternative<Conv>(node.op)) {
      const Graph plain = plain_convolution(c);
      add_new(list, backend.algorithms(spec_of(backend, plain, plain.nodes().back(), c, wants_dx), pass), false);
    }
  } catch (const Unsupported&) {
    return {{"none"}};
  }
  return list;
}

Options layer_options(const Config& c, const Node& node, Pass pass, const std::string& algorithm,
                      const Choice& demands) {
  Options options;
  options.dtype = c.dtype;
  options.layout = c.layout;
  options.input_gradient = pass == Pass::backward_data;
  Choice& choice = options.choice_of[node.name] = demands;
  choice.measure = false;  // the pass is named, and the others are not what is timed
  if (pass <= Pass::backward_data) choice.algorithm[static_cast<std::size_t>(pass)] = algorithm;
  return options;
}

}  // namespace lamina::bench
