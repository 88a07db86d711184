#pragma once
// Which values and gradients share memory: their lifetimes are merged if a backend allows it and no later reader needs
// the old content.

#include <cstdint>
#include <vector>

#include "lifetimes.h"
#include "units.h"

namespace lamina::planner {

/// The place of each value (or gradient): its block, named by the block's `root`, and its offset in it.
struct Places {
  EachNode<NodeId> root;          ///< root of its block; the value itself if it has a separate block
  EachNode<std::int64_t> offset;  ///< offset in elements
};

struct Aliases {
  Places value, gradient;
  EachUnit<std::vector<bool>> dx_shared;  ///< per x: whether dx is dy and shares its memory
};

}  // namespace lamina::planner
