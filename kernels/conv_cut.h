#pragma once
// Which tile a convolution's product takes, and into how many ranges its sum is cut: those that a model of a large
// device (docs/algorithms/implicit_gemm.md) has done first.

#include <algorithm>
#include <cstdint>

#include "conv_implicit_gemm.h"
#include "launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// What a block with a tile takes of a multiprocessor: cycles to issue a step and all before and after its steps, from
/// the machine code for sm_90, and how many blocks there are at once by their registers.
struct ConvTileCost {
  ConvTile tile;
  int bm, bn, step_depth;
  int step_cycles, end_cycles, at_once;
};

struct ConvCut {
  ConvTile tile;
  int ranges;
  std::int64_t cycles = 0;  ///< that the model has for it
};

/// A product's numbers: results by columns, sums of `depth` terms, and how short ranges may be.
struct ConvSize {
  std::int64_t results, columns, groups, depth, least_depth;
  int most_ranges;
};

/// Cycles until the multiprocessor of a large device that has most blocks is done.
inline std::int64_t cycles_of(const ConvSize& size, const ConvTileCost& cost, std::int64_t blocks, int ranges) {
  constexpr std::int64_t latency = 700;                           // from global to shared memory, assumed
  constexpr std::int64_t launch = 2000, lanes = 128, bytes = 22;  // of the kernel that adds ranges; per cycle
  const std::int64_t steps = (size.depth + cost.step_depth - 1) / cost.step_depth,
                     of_range = (steps + ranges - 1) / ranges;
  const auto round = [&](std::int64_t at_once) {
    return of_range * std::max(at_once * cost.step_cycles, at_once > 0 ? latency : 0) + at_once * cost.end_cycles;
  };
  const std::int64_t most = (blocks * ranges + large_device - 1) / large_device;
  const std::int64_t cycles = most / cost.at_once * round(cost.at_once) + round(most % cost.at_once);
  if (ranges == 1) return cycles;
  const std::int64_t sums = size.results * size.columns * size.groups / large_device;
  return cycles + launch + sums * std::max((30 + 2 * ranges) * 100 / lanes, (ranges + 1) * 400 / bytes) / 100;
}

/// The tile and the number of ranges that are done first: of the numbers, those that just fill some rounds of blocks.
/// A tile or a number that is given stays. It follows from the shapes alone.
template <std::size_t tiles>
ConvCut conv_cut_for(const ConvSize& size, const ConvTileCost (&costs)[tiles], ConvTile tile, int ranges) {
  ConvCut best{tile, ranges};
  std::int64_t least = -1;
  for (const ConvTileCost& cost : costs) {
    if (tile == ConvTile::automatic ? cost.bm > 64 && size.results <= 64 : cost.tile != tile) continue;
    const std::int64_t blocks =
        (size.results + cost.bm - 1) / cost.bm * ((size.columns + cost.bn - 1) / cost.bn) * size.groups;
    const std::int64_t most = std::clamp<std::int64_t>(size.depth / size.least_depth, 1, size.most_ranges);
    int last = 0;
    for (int rounds = 1; rounds <= 12; ++rounds) {
      const int cut = static_cast<int>(
          std::clamp<std::int64_t>(large_device * rounds / std::max<std::int64_t>(blocks, 1), 1, most));
      if (cut == last) continue;
      last = cut;
      const int made = ranges == 0 ? cut : ranges;
      const std::int64_t cycles = cycles_of(size, cost, blocks, made);
      if (least >= 0 && cycles >= least) continue;
      least = cycles;
      best = {cost.tile, made, cycles};
    }
  }
  return best;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
