// The list of a plan's decisions before it has memory. After them, run/bind.cpp binds the kernels to their tensors.

#include "layout.h"

#include <algorithm>
#include <utility>

#include "decisions.h"
#include "lamina/error.h"
#include "lib/core/units/unit_memory.h"

namespace lamina::planner {
namespace {

/// Memory to measure in: as much as the plan will take, or more if a unit with its largest allowed workspace needs
/// more. If there is not enough memory for that, only smaller workspaces fit.
Buffer scratch_buffer(Device& device, const PlanLayout& layout) {
  std::size_t least = layout.memory.arena + layout.memory.workspace, most = least;
  for (const Unit& unit : layout.units.list) {
    if (!unit.choice.measure) continue;
    const std::size_t alone = bind_in_buffer(unit.spec, *unit.lowered, nullptr).bytes;
    least = std::max(least, alone + layout.memory.workspace);
    most = std::max(most, alone + unit.choice.workspace_limit);
  }
  try {
    return {device, std::max(least, most)};
  } catch (const OutOfMemory&) {
    return {device, least};
  }
}

/// The unit with one step for dw and dx instead of two, if it has a kernel that does both.
Lowered joined(Lowered unit) {
  const auto dw = std::ranges::find_if(unit.steps, [](const Lowered::Step& each) { return each.with_dx != nullptr; });
  if (unit.steps.end() - dw < 2 || dw[1].algorithm != dw->algorithm || dw[1].passes != std::vector{Pass::backward_data})
    return unit;
  dw->kernel = dw->with_dx;
  dw->passes.push_back(Pass::backward_data);
  dw->max_error = std::max(dw->max_error, dw[1].max_error);
  unit.steps.erase(dw + 1);
  return unit;
}

}  // namespace

void lower(Units& units, const Nodes& nodes, Backend& backend) {
  std::vector<const Unit*> distinct;
  const auto trains = [&](const Unit& unit) { return computes_gradients(nodes[unit.nodes.front()]); };
  for (Unit& unit : units.list) {
    const auto same = std::ranges::find_if(distinct, [&](const Unit* other) {
      return other->spec == unit.spec && other->choice == unit.choice && trains(*other) == trains(unit);
    });
    if (same != distinct.end()) {
      unit.lowered = (*same)->lowered;
      continue;
    }
    if (backend.while_planning) backend.while_planning();
    Choice by_rule = unit.choice;
    by_rule.measure = false;  // measured choices have names already, or are measured later
    const auto at_node = [&](const Error& error) { return "node " + nodes[unit.nodes[0]].name + ": " + error.what(); };
    try {
      Lowered lowered = backend.lower(unit.spec, by_rule);
      unit.lowered = std::make_shared<const Lowered>(trains(unit) ? joined(std::move(lowered)) : std::move(lowered));
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

PlanLayout measured(PlanLayout by_rule, const Graph& graph, Backend& backend, const Options& options) {
  if (std::ranges::none_of(by_rule.units.list, [](const Unit& unit) { return unit.choice.measure; })) return by_rule;
  if (!options.tuner)
    throw UsageError(
        "Choice::measure asks for Options::tuner, which measures: make_tuner() of lamina/tuning.h makes one");

  const Buffer buffer = scratch_buffer(backend.device(), by_rule);
  std::vector<std::pair<const Unit*, MeasuredChoice>> picks;
  EachUnit<decltype(MeasuredChoice::tied)> tied;
  Options settled = options;
  settled.choice_of.clear();
  for (const Unit& unit : by_rule.units.list) {
    const auto same = std::ranges::find_if(
        picks, [&](const auto& m) { return m.first->spec == unit.spec && m.first->choice == unit.choice; });
    MeasuredChoice taken{unit.choice};
    if (same != picks.end())
      taken = same->second;
    else if (unit.choice.measure)
      taken = options.tuner->measure(backend, unit.spec, unit.choice, buffer.data(), buffer.size_bytes());
    if (same == picks.end()) picks.emplace_back(&unit, taken);
    tied.push_back(taken.tied);
    taken.choice.measure = false;
    settled.choice_of[Nodes(graph)[unit.y()].name] = taken.choice;
  }
  PlanLayout layout = make_layout(graph, backend, settled);  // the units are the same: choices change no spec
  layout.tied = std::move(tied);
  return layout;
}

}  // namespace lamina::planner

namespace lamina {

MemoryReport predict_memory(const Graph& graph, Backend& backend, const Options& options) {
  return planner::make_layout(graph, backend, options).memory;
}

std::vector<LiveMemory> predict_live_memory(const Graph& graph, Backend& backend, const Options& options) {
  const planner::PlanLayout layout = planner::make_layout(graph, backend, options);
  const std::size_t units = layout.units.list.size();
  std::vector<LiveMemory> steps(options.mode == Mode::training ? 2 * units : units);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].backward = i >= units;
    const planner::UnitId unit{static_cast<int>(i < units ? i : 2 * units - 1 - i)};
    for (const planner::NodeId node : layout.units.list[unit].nodes) steps[i].nodes.push_back(static_cast<int>(node));
  }
  for (const planner::ArenaBlock& block : layout.blocks) {
    const int last = std::min(block.life.last, static_cast<int>(steps.size()) - 1);
    for (int i = block.life.first; i <= last; ++i) steps[static_cast<std::size_t>(i)].*block.kind += block.life.bytes;
  }
  return steps;
}

}  // namespace lamina
