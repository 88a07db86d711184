// A graph as units of work, for the planner and for users.

#include "units.h"

#include <algorithm>

#include "decisions.h"

namespace lamina::planner {

bool Units::forward_is_view(UnitId unit) const {
  const Unit& u = list[unit];
  if (std::holds_alternative<Slice>(u.spec.op)) return value_view[u.y()].parent == u.x[0];
  return std::holds_alternative<Concat>(u.spec.op) && value_view[u.x[0]].parent == u.y();
}

bool Units::backward_is_view(UnitId unit) const {
  const Unit& u = list[unit];
  return std::holds_alternative<Concat>(u.spec.op) && gradient_view[u.x[0]].parent == u.y();
}

std::vector<NodeId> differentiable_inputs(const Nodes& nodes, NodeId node) {
  const std::vector<Shape> shapes = input_shapes(nodes.graph(), nodes[node]);
  std::vector<NodeId> inputs;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    if (whole_numbers(nodes[node].op, shapes, i) == 0) inputs.push_back(NodeId{nodes[node].inputs[i]});
  return inputs;
}

bool trains(const Node& node) { return std::ranges::find(node.fixed, false) != node.fixed.end(); }

bool computes_gradients(const Node& node) {
  return trains(node) || is_norm(node.op) || std::holds_alternative<Recurrent>(node.op);
}

EachNode<bool> reached_by_gradients(const Nodes& nodes) {
  EachNode<bool> reached(nodes.size(), false);
  reached[nodes.output()] = true;
  for (const NodeId node : nodes.ids() | std::views::reverse)
    if (reached[node])
      for (const NodeId x : differentiable_inputs(nodes, node)) reached[x] = true;
  return reached;
}

}  // namespace lamina::planner

namespace lamina {

std::vector<bool> wanted_gradients(const Graph& graph, const Options& options) {
  const planner::Nodes nodes(graph);
  std::vector<bool> wanted(nodes.size(), false);
  if (options.mode == Mode::inference) return wanted;
  const planner::EachNode<bool> reached = planner::reached_by_gradients(nodes);
  for (const planner::NodeId node : nodes.ids()) {
    wanted[index(node)] = nodes.is_input(node) ? options.input_gradient : planner::trains(nodes[node]);
    for (const planner::NodeId x : planner::differentiable_inputs(nodes, node))
      wanted[index(node)] = wanted[index(node)] || wanted[index(x)];
    wanted[index(node)] = wanted[index(node)] && reached[node];
  }
  return wanted;
}

std::vector<PlannedUnit> planned_units(const Graph& graph, const Backend& backend, const Options& options) {
  std::vector<PlannedUnit> planned;
  const planner::Nodes all(graph);
  planner::Units units = planner::make_units(all, backend, options);
  for (planner::Unit& unit : units.list) {
    std::vector<int> nodes;
    for (const planner::NodeId node : unit.nodes) nodes.push_back(static_cast<int>(node));
    planned.push_back({std::move(nodes), std::move(unit.spec), std::move(unit.choice)});
  }
  return planned;
}

}  // namespace lamina
