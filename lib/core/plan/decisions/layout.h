#pragma once
// The place of everything in a plan: a few buffers, and for each tensor and block an offset in one of them.

#include <cstddef>
#include <vector>

#include "aliases.h"
#include "lamina/live_memory.h"
#include "lifetimes.h"
#include "units.h"

namespace lamina::planner {

/// The buffers of a plan.
enum class BufferKind : std::uint8_t {
  none,
  parameters,
  parameter_gradients,
  state,
  optimiser,
  inputs,
  arena,
  prepared
};

struct Location {
  BufferKind buffer = BufferKind::none;
  std::size_t offset_bytes = 0;
};

/// The workspaces of a unit's calls. Each lives while its call runs.
struct Workspaces {
  Location forward, backward, recompute;  ///< workspaces of the passes; forward's is also for prepare
};

/// A block of the arena.
struct ArenaBlock {
  Lifetime life;
  std::size_t LiveMemory::*kind;
};

/// Everything that a plan decides before it has memory.
struct PlanLayout {
  Units units;
  Lifetimes lives;
  Aliases aliases;
  EachNode<Location> value, gradient, recomputed;
  /// Locations as in Node; empty if another plan has them.
  EachNode<std::vector<Location>> parameter, parameter_gradient, state;
  EachUnit<Location> saved, scratch, prepared;
  EachUnit<Workspaces> workspace;
  EachUnit<decltype(MeasuredChoice::tied)> tied;  ///< algorithms tied with the measured ones; may be empty
  std::size_t parameter_bytes = 0;                ///< bytes of the parameters; their gradients take as much
  std::size_t norm_offset = 0;                    ///< offset in the optimiser's buffer, after its state
  std::size_t loss_scale_offset = 0;              ///< offset after that
  std::vector<ArenaBlock> blocks;
  MemoryReport memory;
};

/// Touches no device. Throws what Plan documents, except for what concerns memory.
PlanLayout make_layout(const Graph&, Backend&, const Options&);

/// The layout with the measured algorithms, from the layout by rule. The tuner measures in memory that is not
/// in use yet. Throws UsageError without Options::tuner.
PlanLayout measured(const PlanLayout& by_rule, const Graph&, Backend&, const Options&);

}  // namespace lamina::planner
