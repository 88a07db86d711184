// The blocks of the arena that live at each step.

#include "lamina/live_memory.h"

#include <algorithm>

#include "layout.h"

namespace lamina {

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
