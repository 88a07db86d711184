#pragma once
// The tile of a convolution's product and the number of ranges of its sum. The choice is the fastest in a model of a
// large device (docs/algorithms/implicit_gemm.md).

#include <algorithm>
#include <cstdint>

#include "conv_implicit_gemm.h"
#include "kernels/common/launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The cost of a block with a tile on a multiprocessor: the cycles to issue a step, the cycles before and after its
/// steps, and the number of resident blocks. They come from the machine code for sm_90 and its registers.
struct ConvTileCost {
  ConvTile tile;
  int bm, bn, step_depth;
  int step_cycles, end_cycles, at_once;
};

struct ConvSchedule {
  ConvTile tile;
  int ranges;           ///< ranges of the first part, which is the deepest
  std::int64_t cycles;  ///< cycles that the model predicts
};

/// The sizes of a product: results by columns, sums of `depth` terms, and the minimum length of a range.
struct ConvSize {
  std::int64_t results, columns, groups, depth, least_depth;
  int most_ranges;
};

/// One of the products of a launch. They differ in these sizes alone. The deepest comes first.
struct ConvPart {
  std::int64_t columns, depth;
};

/// Number of ranges of a part. They are about as long as the `ranges` ranges of the deepest part.
inline int ranges_of(std::int64_t depth, std::int64_t deepest, int ranges) {
  return static_cast<int>(
      std::max<std::int64_t>(1, (depth * ranges + deepest - 1) / std::max<std::int64_t>(deepest, 1)));
}

/// Blocks of a part if its sum is not split.
inline std::int64_t blocks_of(const ConvSize& size, const ConvPart& part, const ConvTileCost& cost) {
  return divide_up(size.results, cost.bm) * divide_up(part.columns, cost.bn) * size.groups;
}

/// The rounds of blocks on one multiprocessor.
class ConvRounds {
 public:
  explicit ConvRounds(const ConvTileCost& cost) : cost_(cost) {}

  /// Adds `blocks` blocks of `steps` steps each.
  void add(std::int64_t blocks, std::int64_t steps) {
    while (blocks > 0) {
      if (open_ == 0 && blocks >= cost_.at_once) {
        cycles_ += blocks / cost_.at_once * round(cost_.at_once, cost_.at_once * steps, steps);
        blocks %= cost_.at_once;
        continue;
      }
      const std::int64_t more = std::min(blocks, cost_.at_once - open_);
      open_ += more;
      steps_ += more * steps;
      longest_ = std::max(longest_, steps);
      blocks -= more;
      if (open_ < cost_.at_once) continue;
      cycles_ = cycles();
      open_ = steps_ = longest_ = 0;
    }
  }
  std::int64_t cycles() const { return cycles_ + round(open_, steps_, longest_); }

 private:
  std::int64_t round(std::int64_t blocks, std::int64_t steps, std::int64_t longest) const {
    constexpr std::int64_t latency = 700;  // cycles from global to shared memory, an assumption
    return std::max(steps * cost_.step_cycles, longest * latency) + blocks * cost_.end_cycles;
  }

  const ConvTileCost& cost_;
  std::int64_t cycles_ = 0, open_ = 0, steps_ = 0, longest_ = 0;
};

/// Cycles until the busiest multiprocessor of a large device is done.
inline std::int64_t cycles_of(const ConvSize& size, const ConvPart* parts, int count, const ConvTileCost& cost,
                              int ranges) {
  // the kernel that adds ranges: cycles of its launch; lanes and bytes per cycle of a multiprocessor
  constexpr std::int64_t launch = 2000, lanes = 128, bytes = 22;
  ConvRounds rounds(cost);
  std::int64_t before = 0, adding = ranges > 1 ? launch : 0;
  for (int i = 0; i < count; ++i) {
    const int own = ranges_of(parts[i].depth, parts[0].depth, ranges);
    const std::int64_t steps = divide_up(parts[i].depth, cost.step_depth);
    const std::int64_t after = before + blocks_of(size, parts[i], cost) * own;
    // Multiprocessors take blocks in turn, so the first one gets most.
    const std::int64_t most = divide_up(after, large_device) - divide_up(before, large_device);
    rounds.add(most, divide_up(steps, own));
    before = after;
    if (own == 1) continue;
    const std::int64_t sums = size.results * parts[i].columns * size.groups / large_device;
    adding += sums * std::max((30 + 2 * own) * 100 / lanes, (own + 1) * 400 / bytes) / 100;
  }
  return rounds.cycles() + adding;
}

/// The tile and the number of ranges that finish first. Candidates are the numbers of ranges that just fill some rounds
/// of blocks. A given tile or number is kept. The result depends on the shapes alone. The parts, at least one, replace
/// the size's columns and depth.
template <std::size_t tiles>
ConvSchedule conv_schedule_for(const ConvSize& size, const ConvPart* parts, int count,
                               const ConvTileCost (&costs)[tiles], ConvTile tile, int ranges) {
  ConvSchedule best{tile, ranges, -1};
  for (const ConvTileCost& cost : costs) {
    if (tile == ConvTile::automatic ? cost.bm > 64 && size.results <= 64 : cost.tile != tile) continue;
    const auto blocks = [&](int made) {
      std::int64_t sum = 0;
      for (int i = 0; i < count; ++i)
        sum += blocks_of(size, parts[i], cost) * ranges_of(parts[i].depth, parts[0].depth, made);
      return sum;
    };
    const std::int64_t most = std::clamp<std::int64_t>(parts[0].depth / size.least_depth, 1, size.most_ranges);
    int cut = 1, last = 0;
    for (int rounds = 1; rounds <= 12; ++rounds) {
      while (cut < most && blocks(cut + 1) <= large_device * rounds) ++cut;
      if (cut == last) continue;
      last = cut;
      const int made = ranges == 0 ? cut : ranges;
      const std::int64_t cycles = cycles_of(size, parts, count, cost, made);
      if (best.cycles < 0 || cycles < best.cycles) best = {cost.tile, made, cycles};
    }
  }
  return best;
}

template <std::size_t tiles>
ConvSchedule conv_schedule_for(const ConvSize& size, const ConvTileCost (&costs)[tiles], ConvTile tile, int ranges) {
  const ConvPart whole{size.columns, size.depth};
  return conv_schedule_for(size, &whole, 1, costs, tile, ranges);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
