#pragma once
// The gradient of a convolution's weights and bias: columns of x times dy, summed over every output position.
//
// One side of the product is read as rows of positions, and its other side is transposed and packed. As a rule the rows
// come from x, because they are cheap to copy, and dy, the smaller matrix, is transposed: the result is
// dw^T[(c, r, s)][k]. Where windows are 1x1 and x has fewer channels than dy, the sides change places. Threads share
// the rows or, where dw is small, the positions. With shared positions each thread has partial sums, which are added up
// in the order of the threads.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "conv.h"
#include "lib/backends/eigen/runtime/elements.h"
#include "position_blocks.h"

namespace lamina::eigen {

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

template <class T>
class WeightGradientProduct {
 public:
  WeightGradientProduct(const ConvUnit& c, Columns x_columns, int threads, const MicroKernels<T>& kernels)
      : c_(c),
        kernels_(&kernels),
        blocks_(position_blocks<T>(c, x_columns, threads, kernels.rows)),
        swapped_(swaps_sides(c, x_columns)),
        left_(left_columns(c, x_columns)),
        right_columns_(std::move(x_columns)),
        right_(swapped_ ? c.group_channels() : c.group_filters()),
        groups_(c.op.groups) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    block_right_ =
        divide_up(right_, divide_up(right_, (blocks_.in_place ? extents_in_place : copied_extents).channels));
    block_right_ = round_up(block_right_, kernels.width());
    const std::int64_t channel = std::max<std::int64_t>(1, left_.staged_bound(blocks_.depth, kernels.lanes) * size);
    const std::int64_t needed = kernels.rows / left_.taps() + 2;  // channels that the rows of a tile read
    staged_channels_ = std::min(left_.channels(), std::max(needed, staged_bytes / channel));
  }

  /// The workspace of all threads.
  std::size_t workspace_bytes() const {
    return allocated_bytes([&](auto& scratch) {
      allocate_shared(scratch);
      for (int part = 0; part < blocks_.partition.parts(); ++part) allocate(scratch);
    });
  }

  void run(const Args& args, ThreadPool& pool) const {
    const Operands operands{.x = {args.x[0].as<T>(), args.x[0].pitch},
                            .dy = gradient_source<T>(c_, args),
                            .dw = args.dw.empty() ? nullptr : args.dw[0].as<T>(),
                            .db = args.dw.size() < 2 ? nullptr : args.dw[1].as<T>(),
                            .add = c_.add_dw};
    ScratchAllocator shared_scratch(args.workspace);
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

 private:
  static constexpr std::int64_t staged_bytes = 128 * 1024;

  struct Operands {
    Source<T> x;
    Source<T> dy;  // read through its mask
    T* dw;         // gradient of weights; null: not wanted
    T* db;         // gradient of bias; null: not wanted
    bool add;
  };
  struct Buffers {
    T* panels;
    T* row_tile;
    T* staged;
    T* right;
    Segment* segments;
    Panel<T>* list;
  };
  struct Shared {
    T* partial;         // position parts x groups x rows x ld
    double* bias_sums;  // position parts x groups x filters
  };
  /// The work of one part: a group, and the rows and positions of it.
  struct Share {
    Source<T> left, right;
    IndexRange rows, positions;
    T* partial;
    double* bias_sums;  // sums for the bias; null: not wanted of this part
  };

  Buffers allocate(ScratchAllocator& scratch) const {
    const std::int64_t width = kernels_->width(), lanes = kernels_->lanes;
    Buffers buffers;
    buffers.panels = scratch.take<T>(block_right_ / width * blocks_.depth * width);
    buffers.row_tile = scratch.take<T>(blocks_.in_place ? 0 : kernels_->rows * round_up(blocks_.depth, lanes) + lanes);
    buffers.staged = scratch.take<T>(staged_channels_ * left_.staged_bound(blocks_.depth, kernels_->lanes) + lanes);
    const bool copies_right = swapped_ && right_columns_.staged();
    const std::int64_t right_bound = copies_right ? right_columns_.staged_bound(blocks_.depth, kernels_->lanes) : 0;
    buffers.right =
        scratch.take<T>(width * (right_bound + (copies_right ? round_up(blocks_.depth, lanes) : 0)) + lanes);
    buffers.segments = scratch.take<Segment>(std::max(left_.segment_bound(blocks_.depth, blocks_.depth),
                                                      right_columns_.segment_bound(blocks_.depth, blocks_.depth)));
    buffers.list = scratch.take<Panel<T>>(block_right_ / width);
    return buffers;
  }

  Shared allocate_shared(ScratchAllocator& scratch) const {
    return {.partial = scratch.take<T>(blocks_.partition.columns * groups_ * rows() * ld()),
            .bias_sums = scratch.take<double>(blocks_.partition.columns * groups_ * filters())};
  }

  Share share(int part, int group, const Operands& operands, const Shared& shared) const {
    const int position_part = part % blocks_.partition.columns, row_part = part / blocks_.partition.columns;
    const Source<T> x = operands.x.further(group * c_.group_channels() * c_.x.plane());
    const Source<T> dy = operands.dy.further(group * c_.group_filters() * c_.y.plane());
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

  void run_part(const Share& share, const Buffers& buffers) const {
    const bool sums_bias = share.bias_sums != nullptr;
    const IndexRange own = swapped_ ? share.rows : IndexRange{0, filters()};
    if (sums_bias) std::fill(share.bias_sums + own.first, share.bias_sums + own.last, 0.0);
    const bool has_rows = share.rows.first < share.rows.last;
    if (!has_rows && !sums_bias) return;
    for (ColumnRange range{share.positions.first, 0}; range.first < share.positions.last; range.first += range.count) {
      range = blocks_.next(range.first, share.positions.last);
      for (std::int64_t f = 0; f < right_; f += block_right_) {
        const std::span<const Panel<T>> list =
            list_channels<T>(std::min(block_right_, right_ - f), kernels_->vectors, kernels_->lanes, buffers.panels,
                             blocks_.depth * kernels_->width(), share.partial + f, buffers.list);
        pack_right(share, range, f, list, buffers);
        if (sums_bias && !swapped_) sum_panels(range.count, list, share.bias_sums + f);
        if (has_rows) add_rows(share, range, list, buffers);
      }
      if (sums_bias && swapped_) sum_rows(share, range);
    }
  }

  void pack_right(const Share& share, ColumnRange range, std::int64_t first, std::span<const Panel<T>> list,
                  const Buffers& buffers) const {
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

  /// Copies rows of x's channels at these positions to rows `ld` apart. For positions that are not dense in x.
  T* copy_right(const Share& share, ColumnRange range, std::int64_t first, std::int64_t count, std::int64_t ld,
                const Buffers& buffers) const {
    const Columns& columns = right_columns_;
    const int lanes = kernels_->lanes;
    T* const rows = buffers.right;
    T* const staged = rows + kernels_->width() * ld;
    columns.stage(range, share.right, first, first + count, *kernels_, staged);
    const std::int64_t segments = columns.segments(range, {ld}, 0, share.right.pitch, lanes, buffers.segments);
    const std::int64_t size = columns.staged_size(range, lanes), staged_rows = columns.staged_rows(range);
    for (std::int64_t channel = 0; channel < count; ++channel) {
      kernels_->copy(rows + channel * ld, staged + columns.start(channel, 0, size, staged_rows, lanes),
                     buffers.segments, segments);
    }
    return rows;
  }

  void add_rows(const Share& share, ColumnRange range, std::span<const Panel<T>> list, const Buffers& buffers) const {
    const std::int64_t taps = left_.taps(), lanes = kernels_->lanes;
    const Source<T>& left = share.left;
    const auto unused = [](const OutputTile<T>&, std::int64_t, std::int64_t) {};  // partial sums are whole vectors
    Block<T> block{.kernels = kernels_,
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

  // NOLINTNEXTLINE(readability-non-const-parameter): they are written, at places of a panel of T
  void sum_panels(std::int64_t depth, std::span<const Panel<T>> list, double* sums) const {
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

  void sum_rows(const Share& share, ColumnRange range) const {
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

  void write(const Operands& operands, const Shared& shared, IndexRange filters_of_all) const {
    constexpr std::int64_t block = 32;
    for (std::int64_t k = filters_of_all.first; operands.db != nullptr && k < filters_of_all.last; ++k) {
      double sum = operands.add ? static_cast<double>(operands.db[k]) : 0.0;
      for (int part = 0; part < blocks_.partition.columns; ++part)
        sum += shared.bias_sums[part * groups_ * filters() + k];
      operands.db[k] = static_cast<T>(sum);
    }
    if (operands.dw == nullptr) return;
    for (std::int64_t k = filters_of_all.first; k < filters_of_all.last;) {
      const std::int64_t group_ends = (k / filters() + 1) * filters();
      const std::int64_t count = std::min({block, filters_of_all.last - k, group_ends - k});
      if (swapped_) {
        write_straight(operands, shared, k, count);
      } else {
        write_transposed(operands, shared, k, count);
      }
      k += count;
    }
  }

  /// dw[k] is a column of the partial sums.
  void write_transposed(const Operands& operands, const Shared& shared, std::int64_t k, std::int64_t count) const {
    constexpr std::int64_t side = 32;
    const std::int64_t part_size = groups_ * rows() * ld();
    T square[side * side];
    const T* const from = shared.partial + k / right_ * rows() * ld() + k % right_;
    for (std::int64_t i = 0; i < rows(); i += side) {
      const std::int64_t height = std::min(side, rows() - i);
      for (int part = 0; part < blocks_.partition.columns; ++part) {
        kernels_->transpose(square, side, from + part * part_size + i * ld(), ld(), nullptr, 0, height, count);
        for (std::int64_t f = 0; f < count; ++f)
          put(operands.dw + (k + f) * rows() + i, square + f * side, height, operands.add || part > 0);
      }
    }
  }

  /// dw[k] is a row of the partial sums.
  void write_straight(const Operands& operands, const Shared& shared, std::int64_t k, std::int64_t count) const {
    const std::int64_t part_size = groups_ * rows() * ld();
    for (std::int64_t f = k; f < k + count; ++f)
      for (int part = 0; part < blocks_.partition.columns; ++part)
        put(operands.dw + f * right_, shared.partial + part * part_size + f * ld(), right_, operands.add || part > 0);
  }

  std::int64_t rows() const { return left_.depth(); }
  std::int64_t ld() const { return round_up(right_, kernels_->lanes); }
  std::int64_t filters() const { return swapped_ ? rows() : right_; }

  ConvUnit c_;
  const MicroKernels<T>* kernels_;
  PositionBlocks blocks_;
  bool swapped_;                  // whether the rows are dy and the panels x
  Columns left_, right_columns_;  // right_columns_: the columns of x, which are read if the sides are swapped
  std::int64_t right_;            // channels of the transposed side, in one group
  int groups_;
  std::int64_t block_right_, staged_channels_;
};

}  // namespace lamina::eigen
