#pragma once
// How a weight gradient divides the positions that it sums over, and which side of the product it transposes.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "lib/backends/common/conv_unit.h"
#include "lib/backends/eigen/gemm/columns.h"
#include "lib/backends/eigen/gemm/gemm.h"

namespace lamina::eigen {

/// How the positions that a sum runs over are divided: among threads, and into the blocks of a product.
struct PositionBlocks {
  std::int64_t count, grid;  ///< positions of all images, and of one image
  bool in_place;             ///< whether rows are not copied: a block then has whole images, or is within one image
  Partition partition;       ///< partition whose `columns` are parts of the positions
  std::int64_t depth = 0;    ///< most positions of a block

  IndexRange of(int part) const { return share_of(count, 1, part % partition.columns, partition.columns); }

  /// The block that starts at `first`.
  ColumnRange next(std::int64_t first, std::int64_t last) const {
    const std::int64_t most = std::min(depth, last - first);
    if (!in_place) return {first, most};
    const std::int64_t left = grid - first % grid;  // rest of the image
    return {first, left == grid && most > left ? most : std::min(most, left)};
  }

  /// The largest number of roundings of a term: its own, one for each later term of its block, one for each later
  /// block, and one for each partial sum.
  std::int64_t roundings() const {
    std::int64_t most = 0;
    for (int part = 0; part < partition.columns; ++part) most = std::max(most, roundings(of(part)));
    return most + partition.columns - 1;
  }

 private:
  /// One rounding for each position of the deepest block that next() makes, and one for each further block. Computed
  /// without a loop, because a batch may have billions of images.
  std::int64_t roundings(IndexRange positions) const {
    const std::int64_t all = positions.last - positions.first;
    const std::int64_t head = in_place ? std::min((grid - positions.first % grid) % grid, all) : 0;  // rest of an image
    const std::int64_t rest = all - head;
    const std::int64_t deepest = std::max(std::min(head, depth), std::min(rest, depth));
    const bool across_images = !in_place || depth > grid;
    const std::int64_t blocks =
        across_images ? divide_up(rest, depth) : rest / grid * divide_up(grid, depth) + divide_up(rest % grid, depth);
    return deepest + divide_up(head, depth) + blocks - 1;
  }
};

/// The bytes of a row of a block, and the most channels of its transposed side. The transposed channels of a block fill
/// half a second-level cache. Blocks whose rows must be copied have more channels, because the rows are copied again
/// for each block of channels.
struct BlockExtents {
  std::int64_t row_bytes, channels;
};
constexpr BlockExtents extents_in_place{2048, 288}, copied_extents{1280, 512};

/// Divides the work as partition() does, except that threads may also share the positions, at the price of partial
/// sums.
template <class T>
Partition divide_positions(std::int64_t positions, std::int64_t rows, std::int64_t filters, int threads,
                           int tile_rows) {
  constexpr std::int64_t partial_bytes = 16 << 20;  // bytes of all partial sums, if there are several
  const int parts = cheapest_divisor(threads, [&](int of_positions, int of_rows) {
    const std::int64_t bytes = of_positions * rows * filters * static_cast<std::int64_t>(sizeof(T));
    if (of_positions > 1 && (bytes > partial_bytes || positions < of_positions))
      return std::numeric_limits<double>::infinity();
    const double tallest = static_cast<double>(divide_up(divide_up(rows, tile_rows), of_rows) * tile_rows);
    const double longest = static_cast<double>(divide_up(positions, of_positions));
    const double f = static_cast<double>(filters);
    constexpr double packing_rows = 24;  // cost of transposing an element of dy, in rows that use it
    constexpr double summing = 16;       // cost of adding up an element of a partial sum, in multiply-adds
    return longest * f * (tallest + packing_rows) + summing * (of_positions - 1) * static_cast<double>(rows) * f;
  });
  return {.columns = parts, .rows = threads / parts};
}

/// Whether the rows of the product are dy.
inline bool swaps_sides(const ConvUnit& c, const Columns& x_columns) {
  return x_columns.taps() == 1 && c.group_filters() > c.group_channels();
}

inline Columns left_columns(const ConvUnit& c, const Columns& x_columns) {
  if (!swaps_sides(c, x_columns)) return x_columns;
  return Columns({c.y.n, c.group_filters(), c.y.h, c.y.w}, c.y.h, c.y.w, 1, {{0, 0}}, c.relu);
}

/// `x_columns` are the columns of one group of x.
template <class T>
PositionBlocks position_blocks(const ConvUnit& c, const Columns& x_columns, int threads, int tile_rows) {
  const Columns left = left_columns(c, x_columns);
  const std::int64_t right = swaps_sides(c, x_columns) ? c.group_channels() : c.group_filters();
  PositionBlocks blocks{.count = left.count(),
                        .grid = left.grid(),
                        .in_place = !left.staged(),
                        .partition = divide_positions<T>(left.count(), left.depth(), right, threads, tile_rows)};
  const BlockExtents& extents = blocks.in_place ? extents_in_place : copied_extents;
  const std::int64_t target = extents.row_bytes / static_cast<std::int64_t>(sizeof(T)), grid = blocks.grid;
  const std::int64_t share = divide_up(blocks.count, blocks.partition.columns);
  if (blocks.in_place && grid <= target) {
    blocks.depth = std::min(target / grid * grid, round_up(share, grid));  // whole images
  } else {
    const std::int64_t whole = blocks.in_place ? std::min(grid, share) : share;
    blocks.depth = divide_up(whole, divide_up(whole, target));
  }
  return blocks;
}

}  // namespace lamina::eigen
