// The list of a plan's decisions before it has memory. After them, run/bind.cpp binds the kernels to their tensors.

#include "layout.h"

#include <algorithm>
#include <vector>

#include "decisions.h"
#include "lamina/error.h"

namespace lamina::planner {

void lower(Units& units, const Nodes& nodes, Backend& backend) {
  std::vector<const Unit*> distinct;
  for (Unit& unit : units.list) {
    const auto same = std::ranges::find_if(
        distinct, [&](const Unit* other) { return other->spec == unit.spec && other->choice == unit.choice; });
    if (same != distinct.end()) {
      unit.lowered = (*same)->lowered;
      continue;
    }
    if (backend.while_planning) backend.while_planning();
    Choice by_rule = unit.choice;
    by_rule.measure = false;  // measured choices have names already, or are measured later
    const auto at_node = [&](const Error& error) { return "node " + nodes[unit.nodes[0]].name + ": " + error.what(); };
    try {
      unit.lowered = std::make_shared<const Lowered>(backend.lower(unit.spec, by_rule));
    } catch (const Unsupported& error) {
      throw Unsupported(at_node(error));
    } catch (const UsageError& error) {
      throw UsageError(at_node(error));
    }
    distinct.push_back(&unit);
  }
}

Units make_units(const Nodes& nodes, const Backend& backend, const Options& options) {
  check(nodes, backend, options);
  Units units = fuse(nodes, backend, options);
  set_betas(units, nodes);
  set_masks(units, backend, options);
  set_views(units, nodes, backend, options);
  set_pitches(units, nodes, options);
  set_choices(units, nodes, backend, options);
  return units;
}

PlanLayout make_layout(const Graph& graph, Backend& backend, const Options& options) {
  const Nodes nodes(graph);
  PlanLayout layout;
  layout.units = make_units(nodes, backend, options);
  lower(layout.units, nodes, backend);
  layout.lives = make_lifetimes(layout.units, nodes, options);
  layout.aliases = make_aliases(layout.units, layout.lives, nodes, options);
  place(layout, nodes, options);
  return layout;
}

}  // namespace lamina::planner

namespace lamina {

MemoryReport predict_memory(const Graph& graph, Backend& backend, const Options& options) {
  return planner::make_layout(graph, backend, options).memory;
}

std::vector<LiveMemory> predict_live_memory(const Graph& graph, Backend& backend, const Options& options) {
  using namespace planner;
  const PlanLayout layout = make_layout(graph, backend, options);
  const std::size_t units = layout.units.list.size();
  std::vector<LiveMemory> steps(options.mode == Mode::training ? 2 * units : units);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].backward = i >= units;
    const UnitId unit{static_cast<int>(i < units ? i : 2 * units - 1 - i)};
    for (const NodeId node : layout.units.list[unit].nodes) steps[i].nodes.push_back(static_cast<int>(node));
  }
  for (const ArenaBlock& block : layout.blocks) {
    const int last = std::min(block.life.last, static_cast<int>(steps.size()) - 1);
    for (int i = block.life.first; i <= last; ++i) steps[static_cast<std::size_t>(i)].*block.kind += block.life.bytes;
  }
  return steps;
}

}  // namespace lamina
