// Operations and bytes of whole passes.

#include "costs.h"

#include <algorithm>

namespace lamina::bench {
namespace {

void add(Cost& to, const Cost& more) {
  to.flops += more.flops;
  to.bytes += more.bytes;
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

}  // namespace lamina::bench
