#pragma once
// How much of a plan's arena is in use while each of its units runs.

#include <cstddef>
#include <vector>

#include "lamina/api.h"
#include "lamina/plan.h"

namespace lamina {

/// Bytes in use while one unit runs, by kind. Parameters, state, inputs and prepared forms are outside the arena and
/// always there: MemoryReport has them.
struct LiveMemory {
  std::vector<int> nodes;  ///< nodes of the unit, in order
  bool backward = false;
  std::size_t values = 0, gradients = 0, saved = 0, scratch = 0, workspace = 0;
  std::size_t total() const { return values + gradients + saved + scratch + workspace; }
};

/// One entry for each step of the plan: its units forward and then, in training, backward. No total exceeds
/// MemoryReport::arena, which is larger where packing leaves gaps. Touches no device. Throws what predict_memory
/// throws.
LAMINA_API std::vector<LiveMemory> predict_live_memory(const Graph&, Backend&, const Options& = {});

}  // namespace lamina
