#pragma once
// The layout of a plan: when each tensor is written and read, which tensors share memory, and for each tensor and block
// an offset in one of a few buffers.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "units.h"

namespace lamina::planner {

/// A step after all others: a tensor that is read then lives as long as the plan.
constexpr Step forever{std::numeric_limits<int>::max()};

/// The steps at which one value or gradient is written and read. Without writes it does not exist.
struct Accesses {
  std::vector<Step> writes, reads;
  Step first() const;  ///< step of the first write; forever if there is none
  Step last() const;   ///< step of the last write or read; none if there is neither
};

struct Lifetimes {
  EachNode<Accesses> value;  ///< accesses of the value; if it is dropped, up to its last forward reader
  EachNode<Accesses> gradient;
  EachNode<Accesses> recomputed;  ///< accesses of a dropped value once it is recomputed; no writes: not dropped
  bool dropped(NodeId node) const { return !recomputed[node].writes.empty(); }
};

/// The flag of operand i in one of Lowered's vectors; false beyond its end.
bool flag(const std::vector<bool>& flags, std::size_t i);

/// The place of each value (or gradient): its block, named by the block's `root`, and its offset in it.
struct Places {
  EachNode<NodeId> root;          ///< root of its block; the value itself if it has a separate block
  EachNode<std::int64_t> offset;  ///< offset in elements
};

struct Aliases {
  Places value, gradient;
  EachUnit<std::vector<bool>> dx_shared;  ///< per x: whether dx is dy and shares its memory
};

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
  /// Locations of parameters and state, as in Node; empty if another plan has them.
  EachNode<std::vector<Location>> parameter, parameter_gradient, state;
  EachUnit<Location> saved, scratch, prepared;
  EachUnit<Workspaces> workspace;
  EachUnit<decltype(MeasuredChoice::tied)> tied;  ///< algorithms tied with the measured picks; may be empty
  std::size_t parameter_bytes = 0;                ///< bytes of the parameters; their gradients take as much
  std::size_t norm_offset = 0;                    ///< offset in the optimiser's buffer, after its state
  std::size_t loss_scale_offset = 0;              ///< offset of the loss scale, after the norm
  std::vector<ArenaBlock> blocks;
  MemoryReport memory;
};

/// Touches no device. Throws what Plan documents, except OutOfMemory and DeviceError.
PlanLayout make_layout(const Graph&, Backend&, const Options&);

/// The layout with measured algorithms where a choice asks for them. The tuner measures in memory that is not in use
/// yet. Throws UsageError without Options::tuner.
PlanLayout measured(PlanLayout by_rule, const Graph&, Backend&, const Options&);

}  // namespace lamina::planner
