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
  std::vector<int> root;             ///< by node; its own index where it has a block of its own
  std::vector<std::int64_t> offset;  ///< in elements
};

struct Aliases {
  Places value, gradient;
  /// By unit, per x: dx is dy and shares its memory, so that nothing has to be computed.
  std::vector<std::vector<bool>> dx_shared;
};

Aliases make_aliases(const Units&, const Lifetimes&, const std::vector<Node>& nodes, const Options&);

}  // namespace lamina::planner
