#pragma once
// Winograd's filtering for the weight gradient: the filter's gradient over all tiles of a batch.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/backends/eigen/runtime/pool.h"
#include "tiles.h"

namespace lamina::eigen {

/// One product per position: (points of dy)^T [outputs][tiles] * points of x [tiles][inputs]. Holds no memory. Threads
/// share the transforms by spans and the products by positions.
///
/// There are two orders. Either blocks of tiles are summed up, for one block of outputs after the other. Or one block
/// has all tiles, and for each block of inputs the points of x stay while the blocks of outputs are processed. The
/// order that transforms fewer channels is taken.
template <class T>
class WinogradWeightGradient {
 public:
  WinogradWeightGradient(const WinogradExtents& extents, int tile, int threads, const MicroKernels<T>& kernels)
      : e_(extents),
        kernels_(&kernels),
        transforms_(&transforms_of(kernels, tile, extents.taps)),
        spans_(extents, tile),
        threads_(threads),
        positions_(transforms_->patch * transforms_->patch) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t lanes = kernels.lanes, longest = spans_.longest(), per_element = size * positions_;
    const std::int64_t unit = std::max<std::int64_t>(lanes, kernels.rows);  // one is a multiple of the other
    const auto block = [](std::int64_t count, std::int64_t fit, std::int64_t grain) {
      return round_up(divide_up(count, divide_up(count, std::max(grain, fit))), grain);
    };
    block_inputs_ = round_up(e_.inputs, lanes);
    block_outputs_ = block(e_.outputs, sums_bytes / per_element / e_.inputs, unit);
    const std::int64_t most_bytes = e_.taps == 5 ? points_bytes_5x5 : points_bytes;
    const std::int64_t tiles = most_bytes / per_element / (e_.inputs + block_outputs_);
    const std::int64_t spans = std::max<std::int64_t>(1, tiles / longest);
    block_spans_ = divide_up(spans_.count(), divide_up(spans_.count(), spans));
    // x is transformed for every block of outputs. If one block has all tiles, dy is transformed for every block of
    // inputs instead.
    const std::int64_t all = spans_.count() * longest, inputs = block(e_.inputs, x_bytes / per_element / all, lanes);
    const std::int64_t channels = divide_up(e_.outputs, block_outputs_) * e_.inputs + e_.outputs;
    const std::int64_t fewer = e_.inputs + divide_up(e_.inputs, inputs) * e_.outputs;
    if (inputs * all * per_element <= x_bytes && 2 * fewer <= channels) {
      block_inputs_ = inputs;
      block_outputs_ = block(e_.outputs, outputs_bytes / per_element / (inputs + all), unit);
      block_spans_ = spans_.count();
    }
    width_ = panel_width(block_inputs_, kernels);
    sums_ld_ = block_inputs_ + lanes;
    sums_position_ = block_outputs_ * sums_ld_ + lanes;
    dy_ld_ = block_outputs_ + lanes;
    dy_position_ = block_spans_ * longest * dy_ld_ + lanes;
    panel_stride_ = block_spans_ * longest * width_ + lanes;
    x_position_ = divide_up(block_inputs_, width_) * panel_stride_ + lanes;
    pixels_size_ = transforms_->patch * transforms_->patch_cols(longest) * lanes;
    workspace_bytes_ = allocated_bytes([&](auto& scratch) { allocate(scratch); });
  }

  std::size_t workspace_bytes() const { return workspace_bytes_; }

  struct Operands {
    Planes x, dy;  ///< dy counts as 0 where its mask, if any, is not above 0
    T* dw;         ///< gradient of weights; null: not wanted
    T* db;         ///< gradient of bias; null: not wanted
    bool add;      ///< whether dw and db are added to
  };

  void run(ThreadPool& pool, const Operands& operands, void* workspace) const {
    ScratchAllocator scratch(workspace);
    const Buffers buffers = allocate(scratch);
    for (int group = 0; group < e_.groups; ++group) {
      Operands of_group = operands;
      of_group.x = operands.x.further(group * e_.inputs * e_.in_plane());
      of_group.dy = operands.dy.further(group * e_.outputs * e_.out_plane());
      if (of_group.dw != nullptr) of_group.dw += std::int64_t{group} * e_.outputs * e_.inputs * e_.taps * e_.taps;
      if (of_group.db != nullptr) of_group.db += std::int64_t{group} * e_.outputs;
      run_group(pool, of_group, buffers);
    }
  }

 private:
  // Bytes that should stay in the L3 cache. If there are several blocks of tiles:
  static constexpr std::int64_t sums_bytes = 8 << 20;        // sums of a block of outputs
  static constexpr std::int64_t points_bytes = 5 << 20;      // points of x and dy, of a block of tiles
  static constexpr std::int64_t points_bytes_5x5 = 2 << 20;  // the same for 5x5: as fast, in less memory
  // If one block has all tiles:
  static constexpr std::int64_t x_bytes = 10 << 20;       // points of x, of a block of inputs
  static constexpr std::int64_t outputs_bytes = 4 << 20;  // sums and points of dy, of a block of outputs

  struct Buffers {
    T *pixels, *x_points, *dy_points, *sums;
    double* bias_sums;
    Panel<T>* list;
  };
  struct Cut {
    IndexRange spans, inputs, outputs;
  };

  Buffers allocate(ScratchAllocator& scratch) const {
    return {.pixels = scratch.take<T>(threads_ * pixels_size_),
            .x_points = scratch.take<T>(positions_ * x_position_),
            .dy_points = scratch.take<T>(positions_ * dy_position_),
            .sums = scratch.take<T>(positions_ * sums_position_),
            .bias_sums = scratch.take<double>(threads_ * round_up(e_.outputs, kernels_->lanes)),
            .list = scratch.take<Panel<T>>(divide_up(block_inputs_, width_))};
  }

  void transform_x(IndexRange spans, std::int64_t before, const Cut& cut, const Planes& x, T* pixels,
                   const Buffers& buffers) const {
    const ChannelPanels panels(cut.inputs, width_, kernels_->lanes, panel_stride_);
    T* const points = buffers.x_points + before * width_;
    for_each_window<T>(x, input_windows(e_, transforms_->tile), spans_, spans, cut.inputs, kernels_->lanes,
                       [&](const auto& window, std::int64_t channel, std::int64_t tile, std::int64_t tiles) {
                         kernels_->winograd.stage(pixels, window);
                         transforms_->patches(
                             {.at = points + panels.at((channel - cut.inputs.first) / kernels_->lanes) + tile * width_,
                              .position = x_position_,
                              .tile = width_,
                              .tiles = tiles},
                             pixels, window.cols);
                       });
  }

  /// Also adds dy to the bias sums of these outputs, if they are given.
  void transform_dy(IndexRange spans, std::int64_t before, const Cut& cut, const Planes& dy, T* pixels,
                    double* bias_sums, const Buffers& buffers) const {
    T* const points = buffers.dy_points + before * dy_ld_;
    for_each_window<T>(dy, output_windows(e_, transforms_->tile), spans_, spans, cut.outputs, kernels_->lanes,
                       [&](const auto& window, std::int64_t k, std::int64_t tile, std::int64_t tiles) {
                         kernels_->winograd.stage(pixels, window);
                         // NOLINTNEXTLINE(misc-const-correctness): tiles() writes them
                         alignas(64) T sums[64 / sizeof(T)] = {};
                         transforms_->tiles({.at = points + tile * dy_ld_ + k - cut.outputs.first,
                                             .position = dy_position_,
                                             .tile = dy_ld_,
                                             .tiles = tiles},
                                            pixels, window.cols, sums);
                         for (int lane = 0; bias_sums != nullptr && lane < kernels_->lanes; ++lane)
                           bias_sums[k + lane] += static_cast<double>(sums[lane]);
                       });
  }

  void run_group(ThreadPool& pool, const Operands& operands, const Buffers& buffers) const {
    const std::int64_t bias_ld = round_up(e_.outputs, kernels_->lanes);
    std::fill(buffers.bias_sums, buffers.bias_sums + threads_ * bias_ld, 0.0);
    for (std::int64_t c = 0; c < e_.inputs; c += block_inputs_) {
      for (std::int64_t k = 0; k < e_.outputs; k += block_outputs_) {
        Cut cut{.spans = {},
                .inputs = {c, std::min<std::int64_t>(c + block_inputs_, e_.inputs)},
                .outputs = {k, std::min<std::int64_t>(k + block_outputs_, e_.outputs)}};
        for (std::int64_t first = 0; first < spans_.count(); first += block_spans_) {
          cut.spans = {first, std::min(first + block_spans_, spans_.count())};
          add_block(pool, cut, operands, buffers);
        }
        write(pool, cut, operands, buffers);
      }
    }
    for (std::int64_t k = 0; operands.db != nullptr && k < e_.outputs; ++k) {
      double sum = operands.add ? static_cast<double>(operands.db[k]) : 0.0;
      for (int part = 0; part < threads_; ++part) sum += buffers.bias_sums[part * bias_ld + k];
      operands.db[k] = static_cast<T>(sum);
    }
  }

  void add_block(ThreadPool& pool, const Cut& cut, const Operands& operands, const Buffers& buffers) const {
    const bool x_stays = block_spans_ == spans_.count() && cut.outputs.first > 0;
    pool.run([&](int part) {
      const IndexRange share = share_of(cut.spans.last - cut.spans.first, 1, part, threads_);
      const IndexRange mine{cut.spans.first + share.first, cut.spans.first + share.last};
      const std::int64_t before = spans_.tiles(cut.spans.first, mine.first);
      T* const pixels = buffers.pixels + part * pixels_size_;
      if (!x_stays) transform_x(mine, before, cut, operands.x, pixels, buffers);
      double* const bias_sums = buffers.bias_sums + part * round_up(e_.outputs, kernels_->lanes);
      transform_dy(mine, before, cut, operands.dy, pixels, cut.inputs.first == 0 ? bias_sums : nullptr, buffers);
    });
    const std::int64_t tiles = spans_.tiles(cut.spans.first, cut.spans.last);
    const ChannelPanels panels(cut.inputs, width_, kernels_->lanes, panel_stride_);
    const std::span<const Panel<T>> list = panels.list(buffers.x_points, buffers.sums, buffers.list);
    const Epilogue<T> epilogue{.add = cut.spans.first > 0};
    pool.run([&](int part) {
      const IndexRange positions = share_of(positions_, 1, part, threads_);
      for (std::int64_t position = positions.first; position < positions.last; ++position) {
        multiply_panels(*kernels_,
                        {.depth = tiles,
                         .a = buffers.dy_points + position * dy_position_,
                         .lda = dy_ld_,
                         .ldb = width_,
                         .ldc = sums_ld_,
                         .epilogue = &epilogue},
                        cut.outputs.last - cut.outputs.first, list, position * x_position_, position * sums_position_,
                        true);
      }
    });
  }

  void write(ThreadPool& pool, const Cut& cut, const Operands& operands, const Buffers& buffers) const {
    if (operands.dw == nullptr) return;
    const std::int64_t lanes = kernels_->lanes, weights = e_.taps * e_.taps;
    pool.each(cut.outputs.last - cut.outputs.first, 1, [&](std::int64_t k) {
      for (std::int64_t channel = cut.inputs.first; channel < cut.inputs.last; channel += lanes) {
        transforms_->gradients(operands.dw + ((cut.outputs.first + k) * e_.inputs + channel) * weights, weights,
                               buffers.sums + k * sums_ld_ + channel - cut.inputs.first, sums_position_,
                               static_cast<int>(std::min(lanes, e_.inputs - channel)), operands.add);
      }
    });
  }

  WinogradExtents e_;
  const MicroKernels<T>* kernels_;
  const WinogradTransforms<T>* transforms_;
  TileSpans spans_;
  int threads_, positions_;
  std::int64_t block_spans_, block_inputs_, block_outputs_;
  std::int64_t width_;  // columns of a panel
  std::int64_t pixels_size_, panel_stride_, x_position_, dy_ld_, dy_position_, sums_ld_, sums_position_;
  std::size_t workspace_bytes_;
};

}  // namespace lamina::eigen
