#pragma once
// Where everything of a plan lies: a few buffers, and an offset in one of them for each tensor and block.

#include <cstddef>
#include <vector>

#include "aliases.h"
#include "lifetimes.h"
#include "units.h"

namespace lamina::planner {

/// The buffers of a plan.
enum class Room : std::uint8_t { none, parameters, parameter_gradients, state, inputs, arena, prepared };

struct Location {
  Room room = Room::none;
  std::size_t offset_bytes = 0;
};

/// Where a unit's calls have their workspace, each while it runs.
struct Workspaces {
  Location forward, backward, recompute;  ///< forward: of prepare, too
};

struct PlanLayout {
  Units units;
  Lifetimes lives;
  Aliases aliases;
  std::vector<Location> value, gradient, remade;                            ///< by node
  std::vector<std::vector<Location>> parameter, parameter_gradient, state;  ///< by node, then as in Node
  std::vector<Location> saved, scratch, prepared;                           ///< by unit
  std::vector<Workspaces> workspace;                                        ///< by unit
  std::vector<decltype(MeasuredChoice::tied)> tied;                         ///< by unit; empty: nothing was measured
  std::size_t parameter_bytes = 0;  ///< of one of the two rooms: parameters or their gradients
  MemoryReport memory;
};

/// Everything a plan decides before it has memory. Throws what Plan documents, except for what concerns memory.
PlanLayout make_layout(const Graph&, Backend&, const Options&);

}  // namespace lamina::planner
