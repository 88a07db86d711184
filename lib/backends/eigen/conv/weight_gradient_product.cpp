// The gradient of a convolution's weights and bias as a product.

#include "weight_gradient_product.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lamina::eigen {
namespace {

// The extents of a row of a block. With the block's transposed channels it is half a second-level cache; rows that
// have to be copied first are copied again for each block of channels, and so want many of these.
struct Extents {
  std::int64_t row_bytes, channels;
};
constexpr Extents read_in_place{2048, 288}, copied{1280, 512};

constexpr std::int64_t staged_bytes = 128 * 1024;
constexpr std::int64_t partial_bytes = 16 << 20;  // bytes of all partial sums, if there are several

/// As for other products, but threads may also share the positions, at the price of partial sums.
template <class T>
Partition divide(std::int64_t positions, std::int64_t rows, std::int64_t filters, int threads, int tile_rows) {
  const int parts = cheapest_divisor(threads, [&](int of_positions, int of_rows) {
    const std::int64_t bytes = of_positions * rows * filters * static_cast<std::int64_t>(sizeof(T));
    if (of_positions > 1 && (bytes > partial_bytes || positions < of_positions))
      return std::numeric_limits<double>::infinity();
    const double tallest = static_cast<double>(divide_up(divide_up(rows, tile_rows), of_rows) * tile_rows);
    const double longest = static_cast<double>(divide_up(positions, of_positions));
    const double f = static_cast<double>(filters);
    constexpr double packing_rows = 24;  // transposing an element of dy costs about as much as using it in so many rows
    constexpr double summing = 16;       // adding up an element of a partial sum, in multiply-adds
    return longest * f * (tallest + packing_rows) + summing * (of_positions - 1) * static_cast<double>(rows) * f;
  });
  return {.columns = parts, .rows = threads / parts};
}

/// Sum of consecutive elements, by lanes.
template <class T>
double sum_of(const T* values, std::int64_t count) {
  constexpr int lanes = 16;
  T sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int l = 0; l < lanes; ++l) sums[l] += values[i + l];
  }
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(values[i]);
  for (const T lane : sums) sum += static_cast<double>(lane);
  return sum;
}

template <class T>
double masked_sum_of(const T* values, const T* mask, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += mask[i] > 0 ? static_cast<double>(values[i]) : 0.0;
  return sum;
}

bool swaps(const ConvUnit& c, const Columns& x_columns) {
  return x_columns.taps() == 1 && c.group_filters() > c.group_channels();
}

Columns left_columns(const ConvUnit& c, const Columns& x_columns) {
  if (!swaps(c, x_columns)) return x_columns;
  return Columns({c.y.n, c.group_filters(), c.y.h, c.y.w}, c.y.h, c.y.w, 1, {{0, 0}}, c.relu);
}

}  // namespace

template <class T>
PositionBlocks position_blocks(const ConvUnit& c, const Columns& x_columns, int threads, int tile_rows) {
  const Columns left = left_columns(c, x_columns);
  const std::int64_t right = swaps(c, x_columns) ? c.group_channels() : c.group_filters();
  PositionBlocks blocks{.count = left.count(),
                        .grid = left.grid(),
                        .in_place = !left.staged(),
                        .partition = divide<T>(left.count(), left.depth(), right, threads, tile_rows)};
  const Extents& extents = blocks.in_place ? read_in_place : copied;
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
template PositionBlocks position_blocks<float>(const ConvUnit&, const Columns&, int, int);
template PositionBlocks position_blocks<double>(const ConvUnit&, const Columns&, int, int);

IndexRange PositionBlocks::of(int part) const {
  return share_of(count, 1, part % partition.columns, partition.columns);
}

ColumnRange PositionBlocks::next(std::int64_t first, std::int64_t last) const {
  const std::int64_t most = std::min(depth, last - first);
  if (!in_place) return {first, most};
  const std::int64_t left = grid - first % grid;  // rest of the image
  return {first, left == grid && most > left ? most : std::min(most, left)};
}

std::int64_t PositionBlocks::roundings() const {
  std::int64_t most = 0;
  for (int part = 0; part < partition.columns; ++part) most = std::max(most, roundings(of(part)));
  return most + partition.columns - 1;
}

/// One rounding for each position of the deepest block that next() makes, and one for each further block. They are
/// counted by arithmetic, because a batch may have billions of images.
std::int64_t PositionBlocks::roundings(IndexRange positions) const {
  const std::int64_t all = positions.last - positions.first;
  const std::int64_t head = in_place ? std::min((grid - positions.first % grid) % grid, all) : 0;  // rest of an image
  const std::int64_t rest = all - head;
  const std::int64_t deepest = std::max(std::min(head, depth), std::min(rest, depth));
  const bool across_images = !in_place || depth > grid;
  const std::int64_t blocks =
      across_images ? divide_up(rest, depth) : rest / grid * divide_up(grid, depth) + divide_up(rest % grid, depth);
  return deepest + divide_up(head, depth) + blocks - 1;
}

template <class T>
WeightGradientProduct<T>::WeightGradientProduct(const ConvUnit& c, Columns x_columns, int threads,
                                                const MicroKernels<T>& kernels)
    : kernels_(&kernels),
      blocks_(position_blocks<T>(c, x_columns, threads, kernels.rows)),
      swapped_(swaps(c, x_columns)),
      left_(left_columns(c, x_columns)),
      right_columns_(std::move(x_columns)),
      right_(swapped_ ? c.group_channels() : c.group_filters()),
      groups_(c.op.groups),
      x_group_(c.group_channels() * c.x.plane()),
      dy_group_(c.group_filters() * c.y.plane()) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  block_right_ = divide_up(right_, divide_up(right_, (blocks_.in_place ? read_in_place : copied).channels));
  block_right_ = round_up(block_right_, kernels.width());
  const std::int64_t channel = std::max<std::int64_t>(1, left_.staged_bound(blocks_.depth, kernels.lanes) * size);
  const std::int64_t needed = kernels.rows / left_.taps() + 2;  // by one row_tile of tile rows
  staged_channels_ = std::min(left_.channels(), std::max(needed, staged_bytes / channel));
}

template <class T>
auto WeightGradientProduct<T>::allocate(ScratchAllocator& scratch) const -> Buffers {
  const std::int64_t width = kernels_->width(), lanes = kernels_->lanes;
  Buffers buffers;
  buffers.panels = scratch.take<T>(block_right_ / width * blocks_.depth * width);
  buffers.row_tile = scratch.take<T>(blocks_.in_place ? 0 : kernels_->rows * round_up(blocks_.depth, lanes) + lanes);
  buffers.staged = scratch.take<T>(staged_channels_ * left_.staged_bound(blocks_.depth, kernels_->lanes) + lanes);
  const bool copies_right = swapped_ && right_columns_.staged();
  const std::int64_t right_bound = copies_right ? right_columns_.staged_bound(blocks_.depth, kernels_->lanes) : 0;
  buffers.right = scratch.take<T>(width * (right_bound + (copies_right ? round_up(blocks_.depth, lanes) : 0)) + lanes);
  buffers.segments = scratch.take<Segment>(std::max(left_.segment_bound(blocks_.depth, blocks_.depth),
                                                    right_columns_.segment_bound(blocks_.depth, blocks_.depth)));
  buffers.list = scratch.take<Panel<T>>(block_right_ / width);
  return buffers;
}

template <class T>
auto WeightGradientProduct<T>::allocate_shared(ScratchAllocator& scratch) const -> Shared {
  Shared shared;
  shared.partial = scratch.take<T>(blocks_.partition.columns * groups_ * rows() * ld());
  shared.bias_sums = scratch.take<double>(blocks_.partition.columns * groups_ * filters());
  return shared;
}

template <class T>
std::size_t WeightGradientProduct<T>::workspace_bytes() const {
  return allocated_bytes([&](auto& scratch) {
    allocate_shared(scratch);
    for (int part = 0; part < blocks_.partition.parts(); ++part) allocate(scratch);
  });
}

template <class T>
auto WeightGradientProduct<T>::share(int part, int group, const Operands& operands, const Shared& shared) const
    -> Share {
  const int position_part = part % blocks_.partition.columns, row_part = part / blocks_.partition.columns;
  const Source<T> x = operands.x.further(group * x_group_), dy = operands.dy.further(group * dy_group_);
  const std::int64_t slot = position_part * groups_ + group;
  const bool sums_bias = operands.db != nullptr && (swapped_ || row_part == 0);
  const IndexRange all_rows = share_of(rows(), kernels_->rows, row_part, blocks_.partition.rows);
  return {.left = swapped_ ? dy : x,
          .right = swapped_ ? x : dy,
          .rows = operands.dw != nullptr || swapped_ ? all_rows : IndexRange{0, 0},
          .positions = blocks_.of(part),
          .partial = shared.partial + slot * rows() * ld(),
          .bias_sums = sums_bias ? shared.bias_sums + slot * filters() : nullptr};
}

template <class T>
std::span<const Panel<T>> WeightGradientProduct<T>::list_right(const Share& share, std::int64_t first,
                                                               std::int64_t count, const Buffers& buffers) const {
  return list_channels<T>(count, kernels_->vectors, kernels_->lanes, buffers.panels, blocks_.depth * kernels_->width(),
                          share.partial + first, buffers.list);
}

template <class T>
void WeightGradientProduct<T>::pack_right(const Share& share, ColumnRange range, std::int64_t first,
                                          std::span<const Panel<T>> list, const Buffers& buffers) const {
  const std::int64_t width = kernels_->width(), grid = left_.grid();
  const Source<T>& right = share.right;
  for (const Panel<T>& panel : list) {
    T* const packed = buffers.panels + (&panel - list.data()) * blocks_.depth * width;
    if (panel.count % kernels_->lanes != 0) std::fill(packed, packed + range.count * width, T{0});
    if (swapped_ && right_columns_.staged()) {
      const std::int64_t ld = round_up(range.count, kernels_->lanes);
      T* const rows = copy_right(share, range, first + panel.column, panel.count, ld, buffers);
      kernels_->transpose(packed, width, rows, ld, nullptr, 0, panel.count, range.count);
      continue;
    }
    for (std::int64_t j = 0; j < range.count;) {
      const std::int64_t image = (range.first + j) / grid, at = (range.first + j) % grid;
      const std::int64_t run = std::min(grid - at, range.count - j);
      const std::int64_t offset = (first + panel.column) * grid + at;
      const T* const mask = right.mask == nullptr ? nullptr : right.mask + image * right.mask_pitch + offset;
      kernels_->transpose(packed + j * width, width, right.data + image * right.pitch + offset, grid, mask, grid,
                          panel.count, run);
      j += run;
    }
  }
}

/// Rows of x's channels at these positions, `ld` apart, where they are apart in x.
template <class T>
T* WeightGradientProduct<T>::copy_right(const Share& share, ColumnRange range, std::int64_t first, std::int64_t count,
                                        std::int64_t ld, const Buffers& buffers) const {
  const Columns& columns = right_columns_;
  const int lanes = kernels_->lanes;
  T* const rows = buffers.right;
  T* const staged = rows + kernels_->width() * ld;
  columns.stage(range, share.right, first, first + count, *kernels_, staged);
  const std::int64_t segments = columns.segments(range, {ld}, 0, share.right.pitch, lanes, buffers.segments);
  const std::int64_t size = columns.staged_size(range, lanes), staged_rows = columns.staged_rows(range);
  for (std::int64_t channel = 0; channel < count; ++channel) {
    kernels_->copy(rows + channel * ld, staged + columns.start(channel, 0, size, staged_rows, lanes), buffers.segments,
                   segments);
  }
  return rows;
}

template <class T>
void WeightGradientProduct<T>::sum_panels(std::int64_t depth, std::span<const Panel<T>> list, double* sums) const {
  const std::int64_t width = kernels_->width();
  for (const Panel<T>& panel : list) {
    const T* row = panel.b;
    T block[64] = {};
    for (std::int64_t k = 0; k < depth; ++k, row += width) {
      for (std::int64_t j = 0; j < panel.count; ++j) block[j] += row[j];
    }
    for (std::int64_t j = 0; j < panel.count; ++j) sums[panel.column + j] += static_cast<double>(block[j]);
  }
}

template <class T>
void WeightGradientProduct<T>::sum_rows(const Share& share, ColumnRange range) const {
  const std::int64_t grid = left_.grid();
  const Source<T>& dy = share.left;
  for (std::int64_t j = 0; j < range.count;) {
    const std::int64_t image = (range.first + j) / grid, at = (range.first + j) % grid;
    const std::int64_t run = std::min(grid - at, range.count - j);
    for (std::int64_t k = share.rows.first; k < share.rows.last; ++k) {
      const T* const from = dy.data + image * dy.pitch + k * grid + at;
      share.bias_sums[k] += dy.mask == nullptr
                                ? sum_of(from, run)
                                : masked_sum_of(from, dy.mask + image * dy.mask_pitch + k * grid + at, run);
    }
    j += run;
  }
}

template <class T>
void WeightGradientProduct<T>::add_rows(const Share& share, ColumnRange range, std::span<const Panel<T>> list,
                                        const Buffers& buffers) const {
  const std::int64_t taps = left_.taps(), lanes = kernels_->lanes;
  const Source<T>& left = share.left;
  const auto unused = [](const OutputTile<T>&, std::int64_t, std::int64_t) {};  // partial sums are whole vectors
  Block<T> block{.kernels = kernels_,
                 .rows = 0,
                 .depth = range.count,
                 .a = {buffers.row_tile, round_up(blocks_.depth, lanes)},
                 .b = {list, kernels_->width()},
                 .c = {ld()},
                 .along = {.begins = range.first == share.positions.first},
                 .ahead = {.c = narrow_vectors(*kernels_)}};
  if (blocks_.in_place) {
    const std::int64_t grid = left_.grid();
    const T* const first = left.data + range.first / grid * left.pitch + range.first % grid;
    block.rows = share.rows.last - share.rows.first;
    block.a = {first + share.rows.first * grid, grid, grid, left.pitch};
    block.c.offset = share.rows.first * ld();
    block.ahead.a = true;
    multiply(block, unused);
    return;
  }
  const std::int64_t segments =
      left_.segments(range, {blocks_.depth}, 0, left.pitch, kernels_->lanes, buffers.segments);
  const std::int64_t size = left_.staged_size(range, kernels_->lanes), staged_rows = left_.staged_rows(range);
  std::int64_t staged_first = 0, staged_last = 0;
  for (std::int64_t i = share.rows.first; i < share.rows.last; i += kernels_->rows) {
    block.rows = std::min<std::int64_t>(kernels_->rows, share.rows.last - i);
    if ((i + block.rows - 1) / taps >= staged_last) {
      staged_first = i / taps;
      staged_last = std::min(left_.channels(), staged_first + staged_channels_);
      left_.stage(range, left, staged_first, staged_last, *kernels_, buffers.staged);
    }
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const std::int64_t channel = (i + row) / taps, tap = (i + row) % taps;
      T* const to = buffers.row_tile + row * block.a.ld;
      const std::int64_t start = left_.start(channel - staged_first, tap, size, staged_rows, kernels_->lanes);
      kernels_->copy(to, buffers.staged + start, buffers.segments, segments);
    }
    block.c.offset = i * ld();
    multiply(block, unused);
  }
}

template <class T>
void WeightGradientProduct<T>::run_part(const Share& share, const Buffers& buffers) const {
  const bool sums_bias = share.bias_sums != nullptr;
  if (sums_bias) {
    double* const sums = share.bias_sums;
    if (swapped_) {
      std::fill(sums + share.rows.first, sums + share.rows.last, 0.0);
    } else {
      std::fill(sums, sums + filters(), 0.0);
    }
  }
  const bool has_rows = share.rows.first < share.rows.last;
  if (!has_rows && !sums_bias) return;
  for (ColumnRange range{share.positions.first, 0}; range.first < share.positions.last; range.first += range.count) {
    range = blocks_.next(range.first, share.positions.last);
    for (std::int64_t f = 0; f < right_; f += block_right_) {
      const std::span<const Panel<T>> list = list_right(share, f, std::min(block_right_, right_ - f), buffers);
      pack_right(share, range, f, list, buffers);
      if (sums_bias && !swapped_) sum_panels(range.count, list, share.bias_sums + f);
      if (has_rows) add_rows(share, range, list, buffers);
    }
    if (sums_bias && swapped_) sum_rows(share, range);
  }
}

template <class T>
void WeightGradientProduct<T>::run(ThreadPool& pool, const Operands& operands, void* workspace) const {
  ScratchAllocator shared_scratch(workspace);
  const Shared shared = allocate_shared(shared_scratch);
  const std::size_t bytes = allocated_bytes([&](auto& scratch) { allocate(scratch); });
  pool.run([&](int part) {
    if (part >= blocks_.partition.parts()) return;
    ScratchAllocator scratch = shared_scratch.part(part, bytes);
    const Buffers buffers = allocate(scratch);
    for (int group = 0; group < groups_; ++group) run_part(share(part, group, operands, shared), buffers);
  });
  pool.split(groups_ * filters(), 8, [&](std::int64_t first, std::int64_t last) {
    write(operands, shared, {first, last});
  });
}

template class WeightGradientProduct<float>;
template class WeightGradientProduct<double>;

}  // namespace lamina::eigen
