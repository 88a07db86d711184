// A graph as units of work, and the same for users.

#include "units.h"

#include <utility>

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

}  // namespace lamina::planner

namespace lamina {

std::vector<bool> wanted_gradients(const Graph& graph, const Options& options) {
  const planner::Nodes nodes(graph);
  std::vector<bool> wanted(nodes.size(), false);
  if (options.mode == Mode::inference) return wanted;
  for (const planner::NodeId node : nodes.ids()) {
    wanted[index(node)] = nodes.is_input(node) ? options.input_gradient : !nodes[node].params.empty();
    for (const planner::NodeId x : nodes.inputs(node)) wanted[index(node)] = wanted[index(node)] || wanted[index(x)];
  }
  return wanted;
}

std::vector<PlannedUnit> planned_units(const Graph& graph, const Backend& backend, const Options& options) {
  std::vector<PlannedUnit> planned;
  for (planner::Unit& unit : planner::make_units(planner::Nodes(graph), backend, options).list) {
    std::vector<int> nodes;
    for (const planner::NodeId node : unit.nodes) nodes.push_back(static_cast<int>(node));
    planned.push_back({std::move(nodes), std::move(unit.spec)});
  }
  return planned;
}

}  // namespace lamina
