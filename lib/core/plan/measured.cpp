// Choices that ask to be measured: the layout with the algorithms that won.

#include <algorithm>
#include <utility>
#include <vector>

#include "lamina/error.h"
#include "lib/core/plan/decisions/layout.h"
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

}  // namespace

PlanLayout measured(const PlanLayout& by_rule, const Graph& graph, Backend& backend, const Options& options) {
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
