// Memory from lifetimes: places blocks so that no two that are alive together overlap.

#include <algorithm>
#include <numeric>

#include "lamina/plan.h"

namespace lamina {

Packing pack(const std::vector<Lifetime>& blocks, std::size_t alignment) {
  const auto aligned = [alignment](std::size_t bytes) { return (bytes + alignment - 1) & ~(alignment - 1); };
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  Packing packing;
  packing.offsets.resize(blocks.size());
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t b : order) {
    const std::size_t bytes = aligned(blocks[b].bytes);
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      if (blocks[other].last < blocks[b].first || blocks[b].last < blocks[other].first) continue;
      if (offset + bytes <= packing.offsets[other]) break;
      offset = std::max(offset, packing.offsets[other] + aligned(blocks[other].bytes));
    }
    packing.offsets[b] = offset;
    packing.bytes = std::max(packing.bytes, offset + bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [&](std::size_t o, std::size_t other) { return o < packing.offsets[other]; });
    placed.insert(at, b);
  }
  return packing;
}

}  // namespace lamina
