#pragma once
// Where everything of a plan lies: a few buffers, and an offset in one of them for each tensor and block.

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "aliases.h"
#include "lifetimes.h"
#include "units.h"

namespace lamina::planner {

/// The buffers of a plan.
enum class Room : std::uint8_t { none, parameters, parameter_gradients, state, optimiser, inputs, arena, prepared };

struct Location {
  Room room = Room::none;
  std::size_t offset_bytes = 0;
};

/// Where a unit's calls have their workspace, each while it runs.
struct Workspaces {
  Location forward, backward, recompute;  ///< forward: of prepare, too
};

/// Everything that a plan decides before it has memory.
struct PlanLayout {
  Units units;
  Lifetimes lives;
  Aliases aliases;
  EachNode<Location> value, gradient, remade;
  EachNode<std::vector<Location>> parameter, parameter_gradient, state;  ///< as in Node; empty if another plan's
  EachUnit<Location> saved, scratch, prepared;
  EachUnit<Workspaces> workspace;
  EachUnit<decltype(MeasuredChoice::tied)> tied;  ///< empty where nothing was measured
  std::size_t parameter_bytes = 0;                ///< of the room of parameters; their gradients take as much
  std::size_t norm_offset = 0;                    ///< in the room of the optimiser, after its state
  MemoryReport memory;
};

/// Touches no device. Throws what Plan documents, except for what concerns memory.
PlanLayout make_layout(const Graph&, Backend&, const Options&);

/// Likewise, but where a choice asks for measurement, the backend measures in memory that nobody uses yet, and the
/// layout is the one with what it measured.
PlanLayout make_measured_layout(const Graph&, Backend&, const Options&);

}  // namespace lamina::planner
