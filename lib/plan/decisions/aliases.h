#pragma once
// Who shares whose memory: merges the lives of values, and of gradients, where a backend allows it and no later reader
// minds.

#include <cstdint>
#include <vector>

#include "lifetimes.h"
#include "units.h"

namespace lamina::planner {

/// Where each value (or gradient) lies: in the block of `root`, from element `offset` on.
struct Places {
  EachNode<NodeId> root;          ///< itself where it has a block of its own
  EachNode<std::int64_t> offset;  ///< in elements
};

struct Aliases {
  Places value, gradient;
  EachUnit<std::vector<bool>> dx_shared;  ///< per x: dx is dy and shares its memory: there is nothing to compute
};

}  // namespace lamina::planner
