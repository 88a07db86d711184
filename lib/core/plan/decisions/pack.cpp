// Memory from lifetimes: places blocks so that no two that are alive together overlap.

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <string>

#include "lamina/error.h"
#include "lamina/plan.h"
#include "lib/core/numbers/rounding.h"

namespace lamina {
namespace {

/// A block that has its place. The fields that a search reads are contiguous.
struct Placed {
  std::size_t offset, end;
  int first, last;
};

/// Throws UsageError for an alignment that is not a power of two, and for blocks whose sum exceeds 64 bits.
void check(const std::vector<Lifetime>& blocks, std::size_t alignment) {
  if (!std::has_single_bit(alignment))
    throw UsageError("pack: the alignment is " + std::to_string(alignment) + "; give a power of two");
  std::size_t left = std::numeric_limits<std::size_t>::max();
  for (const Lifetime& block : blocks) {
    if (left < alignment || block.bytes > left - alignment)
      throw UsageError("pack: the blocks take more than 2^64 bytes together; give fewer or smaller ones");
    left -= block.bytes + alignment;
  }
}

}  // namespace

Packing pack(const std::vector<Lifetime>& blocks, std::size_t alignment) {
  check(blocks, alignment);
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  Packing packing;
  packing.offsets.resize(blocks.size());
  std::vector<Placed> placed;  // sorted by offset
  for (const std::size_t b : order) {
    const Lifetime& block = blocks[b];
    const std::size_t bytes = aligned(block.bytes, alignment);
    std::size_t offset = 0;
    for (const Placed& other : placed) {
      if (other.last < block.first || block.last < other.first) continue;
      if (offset + bytes <= other.offset) break;
      offset = std::max(offset, other.end);
    }
    packing.offsets[b] = offset;
    packing.bytes = std::max(packing.bytes, offset + bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [](std::size_t o, const Placed& other) { return o < other.offset; });
    placed.insert(at, {offset, offset + bytes, block.first, block.last});
  }
  return packing;
}

}  // namespace lamina
