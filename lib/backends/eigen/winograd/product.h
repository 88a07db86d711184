#pragma once
// Winograd's filtering: a forward pass and, with flipped filters, a data gradient.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/backends/eigen/runtime/pool.h"
#include "tiles.h"

namespace lamina::eigen {

/// One product per position: points [tiles][inputs] * filters [inputs][outputs]. Holds no memory.
///
/// For each block of tiles, patches are transformed into the block's points. Then for each chunk of outputs, filters
/// are transformed and multiplied, and the products transformed. If outputs need not be divided, each thread has
/// separate blocks and waits for the others only at the end. Otherwise threads share the patches of each block, and
/// then its outputs, its tiles, or both. All filters are transformed before the first block if they take little memory.
template <class T>
class WinogradProduct {
 public:
  /// `flipped`: filters are [inputs][outputs][taps][taps] and are rotated by 180 degrees.
  WinogradProduct(const WinogradExtents& extents, int tile, bool flipped, int threads, const MicroKernels<T>& kernels)
      : e_(extents),
        flipped_(flipped),
        kernels_(&kernels),
        transforms_(&transforms_of(kernels, tile, extents.taps)),
        spans_(extents, tile),
        threads_(threads),
        positions_(transforms_->patch * transforms_->patch) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t lanes = kernels.lanes, longest = spans_.longest();
    // Rows and positions are a vector further apart than needed, so that they fall into different sets of a cache.
    point_ld_ = round_up(e_.inputs, lanes) + lanes;
    const bool light = e_.groups * positions_ * e_.inputs * round_up(e_.outputs, lanes) * size <= filters_bytes;
    const std::int64_t most_tiles = threads * (e_.taps == 5 && light ? thread_tiles_5x5 : thread_tiles);
    const std::int64_t tiles = std::min(points_bytes / size / positions_ / point_ld_, most_tiles);
    const std::int64_t fit = std::max<std::int64_t>(1, tiles / longest);
    block_spans_ = divide_up(spans_.count(), divide_up(spans_.count(), fit));
    partition_ = divide(block_spans_, longest, e_.outputs, threads, kernels.lanes, light);
    apart_ = partition_.rows == 1;
    if (apart_) {
      const std::int64_t share = divide_up(spans_.count(), threads);
      block_spans_ = divide_up(share, divide_up(share, std::max<std::int64_t>(1, fit / threads)));
      partition_ = {};
    }
    filters_first_ = light && block_spans_ < spans_.count();
    point_position_ = block_spans_ * longest * point_ld_ + lanes;

    const std::int64_t tallest = divide_up(divide_up(e_.outputs, lanes), partition_.rows) * lanes;
    width_ = panel_width(tallest, kernels);
    if (width_ > 2 * lanes && positions_ * e_.inputs * width_ * size > wide_panel_bytes) width_ = 2 * lanes;
    panel_stride_ = e_.inputs * width_ + lanes;
    const std::int64_t panels =
        std::clamp<std::int64_t>(filters_bytes / size / positions_ / panel_stride_, 1, most_vectors * lanes / width_);
    const std::int64_t chunks = divide_up(tallest, panels * width_);
    for (int row = 0; row < partition_.rows; ++row) {
      const IndexRange outputs = share_of(e_.outputs, lanes, row, partition_.rows);
      std::int64_t first = outputs.first;
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::int64_t left = divide_up(outputs.last - first, lanes);
        const std::int64_t vectors = panels > 1 ? panels * width_ / lanes : panel_vectors(left, width_ / lanes);
        const std::int64_t last = std::min(first + vectors * lanes, outputs.last);
        chunks_.push_back({first, last});
        first = last;
      }
    }
    const std::int64_t widest = std::min(tallest, panels * width_);
    filter_position_ = divide_up(widest, width_) * panel_stride_ + lanes;
    chunk_size_ = positions_ * filter_position_;
    product_ld_ = round_up(widest, lanes) + lanes;
    product_position_ = divide_up(block_spans_, partition_.columns) * longest * product_ld_ + lanes;
    pixels_size_ = transforms_->patch * transforms_->patch_cols(longest) * lanes;
  }

  /// Whether inference keeps transformed filters. They take 4 times the memory of the filters (tiles of 2x2: 16 / 9
  /// times; 5x5: 36 / 25 times). Where a filter serves many tiles, its transform costs less than a fifth of its use.
  bool keeps_filters() const { return spans_.tiles(0, spans_.count()) < 64; }
  std::int64_t prepared_count() const { return e_.groups * group_size(); }  ///< elements written by prepare()

  void prepare(ThreadPool& pool, const T* w, const T* scale, T* to) const {
    const auto chunks = static_cast<std::int64_t>(chunks_.size());
    pool.each(e_.groups * chunks, 1, [&](std::int64_t i) {
      transform_filters(w, scale, static_cast<int>(i / chunks), chunks_[static_cast<std::size_t>(i % chunks)],
                        to + i * chunk_size_);
    });
  }

  struct Operands {
    const T* w;         ///< filters of all groups, if `prepared` is null
    const T* prepared;  ///< filters made by prepare() with the epilogue's scale, or null
    Planes source, to;
    Epilogue<T> epilogue;  ///< its scale multiplies the filters
  };

  std::size_t workspace_bytes(bool prepared) const {
    return allocated_bytes([&](auto& scratch) { allocate(scratch, prepared); });
  }

  void run(ThreadPool& pool, const Operands& given, void* workspace) const {
    ScratchAllocator scratch(workspace);
    const Buffers buffers = allocate(scratch, given.prepared != nullptr);
    Operands operands = given;
    if (operands.prepared == nullptr && filters_first_) {
      prepare(pool, operands.w, operands.epilogue.scale, buffers.filters);
      operands.prepared = buffers.filters;
    }
    if (apart_) {
      pool.run([&](int part) { run_apart(part, operands, buffers); });
    } else {
      run_together(pool, operands, buffers);
    }
  }

 private:
  static constexpr std::int64_t thread_tiles = 112;          // tiles of a block, for each thread
  static constexpr std::int64_t thread_tiles_5x5 = 48;       // for 5x5 with filters_first_: as fast, in half the memory
  static constexpr std::int64_t points_bytes = 7 << 20;      // points of a block: they should stay in the L3 cache
  static constexpr std::int64_t filters_bytes = 4 << 20;     // filters of a chunk, or all that are transformed first
  static constexpr std::int64_t most_vectors = 4;            // vectors of outputs in a chunk
  static constexpr std::int64_t wide_panel_bytes = 3 << 20;  // filters in a panel of three vectors
  static constexpr std::int64_t prefetched_inputs = 4;  // inputs from the transformed filters to the prefetched filters
  static constexpr std::int64_t filter_worth = 12;      // cost of transforming a filter, in tiles that use it

  /// The partition of a block whose largest part is smallest. Every part transforms the filters of its outputs, unless
  /// they are `transformed` before. Parts that share points wait for each other, which costs a quarter. This cost is
  /// left out where every block transforms filters, which costs more.
  static Partition divide(std::int64_t spans, std::int64_t longest, std::int64_t outputs, int threads, int lanes,
                          bool transformed) {
    const int row_parts = cheapest_divisor(threads, [&](int of_rows, int of_columns) {
      const std::int64_t tallest = divide_up(divide_up(outputs, lanes), of_rows) * lanes;
      const std::int64_t uses = divide_up(spans, of_columns) * longest + (transformed ? 0 : filter_worth);
      return tallest * uses * (of_rows > 1 && transformed ? 5 : 4);
    });
    return {threads / row_parts, row_parts};
  }

  struct Buffers {  // one of each per thread; threads share the points of a common block
    T *points, *pixels, *filters, *products;
  };
  struct Group {
    int index;
    const Operands* operands;
  };
  std::int64_t group_size() const { return static_cast<std::int64_t>(chunks_.size()) * chunk_size_; }

  Buffers allocate(ScratchAllocator& scratch, bool prepared) const {
    return {.points = scratch.take<T>((apart_ ? threads_ : 1) * positions_ * point_position_),
            .pixels = scratch.take<T>(threads_ * pixels_size_),
            .filters = scratch.take<T>(prepared         ? 0
                                       : filters_first_ ? prepared_count()
                                                        : threads_ * chunk_size_),
            .products = scratch.take<T>(threads_ * positions_ * product_position_)};
  }

  void transform_filters(const T* w, const T* scale, int group, IndexRange outputs, T* to) const {
    const std::int64_t lanes = kernels_->lanes, inputs = e_.inputs, weights = e_.taps * e_.taps;
    const std::int64_t per_output = flipped_ ? weights : inputs * weights;
    const std::int64_t per_input = flipped_ ? e_.outputs * weights : weights;
    const T* const from = w + group * inputs * e_.outputs * weights;
    const ChannelPanels panels(outputs, width_, lanes, panel_stride_);
    for (std::int64_t k = outputs.first; k < outputs.last; k += lanes) {
      T* const made = to + panels.at((k - outputs.first) / lanes);
      const int count = static_cast<int>(std::min(lanes, outputs.last - k));
      for (std::int64_t input = 0; input < inputs; ++input) {
        transforms_->filters(made + input * width_, filter_position_, from + input * per_input + k * per_output,
                             per_output, scale == nullptr ? nullptr : scale + group * e_.outputs + k, count, flipped_,
                             prefetched_inputs * per_input);
      }
    }
  }

  void transform_inputs(IndexRange block, IndexRange spans, const Group& group, T* pixels, T* points) const {
    const Planes source = group.operands->source.further(group.index * e_.inputs * e_.in_plane());
    points += spans_.tiles(block.first, spans.first) * point_ld_;
    for_each_window<T>(source, input_windows(e_, transforms_->tile), spans_, spans, {0, e_.inputs}, kernels_->lanes,
                       [&](const auto& window, std::int64_t channel, std::int64_t tile, std::int64_t tiles) {
                         kernels_->winograd.stage(pixels, window);
                         transforms_->patches({.at = points + tile * point_ld_ + channel,
                                               .position = point_position_,
                                               .tile = point_ld_,
                                               .tiles = tiles},
                                              pixels, window.cols);
                       });
  }

  void transform_outputs(IndexRange spans, IndexRange outputs, const Group& group, T* pixels, T* products) const {
    const Epilogue<T> epilogue = group.operands->epilogue.from(group.index * e_.outputs);
    const Planes to = group.operands->to.further(group.index * e_.outputs * e_.out_plane());
    for_each_window<T>(to, output_windows(e_, transforms_->tile), spans_, spans, outputs, kernels_->lanes,
                       [&](const auto& window, std::int64_t k, std::int64_t tile, std::int64_t tiles) {
                         alignas(64) T bias[64 / sizeof(T)] = {};
                         if (epilogue.bias != nullptr) std::copy_n(epilogue.bias + k, window.channels, bias);
                         transforms_->outputs(pixels, window.cols,
                                              {.at = products + tile * product_ld_ + k - outputs.first,
                                               .position = product_position_,
                                               .tile = product_ld_,
                                               .tiles = tiles},
                                              bias);
                         if (epilogue.activation != nullptr)
                           epilogue.activation->forward(pixels, pixels,
                                                        transforms_->tile * window.cols * kernels_->lanes);
                         kernels_->winograd.unstage(pixels, window, epilogue.add, epilogue.bounds);
                       });
  }

  void run_apart(int part, const Operands& operands, Buffers buffers) const {
    // Each thread has separate blocks, which are not divided, and separate buffers.
    buffers.points += part * positions_ * point_position_;
    buffers.pixels += part * pixels_size_;
    buffers.filters += filters_first_ ? 0 : part * chunk_size_;
    buffers.products += part * positions_ * product_position_;
    const IndexRange share = share_of(spans_.count(), 1, part, threads_);
    for (int g = 0; g < e_.groups; ++g) {
      for (std::int64_t first = share.first; first < share.last; first += block_spans_) {
        const IndexRange block{first, std::min(first + block_spans_, share.last)};
        transform_inputs(block, block, {g, &operands}, buffers.pixels, buffers.points);
        multiply_part(0, block, {g, &operands}, buffers);
      }
    }
  }

  void run_together(ThreadPool& pool, const Operands& operands, const Buffers& buffers) const {
    for (int g = 0; g < e_.groups; ++g) {
      const Group group{g, &operands};
      for (std::int64_t first = 0; first < spans_.count(); first += block_spans_) {
        const IndexRange block{first, std::min(first + block_spans_, spans_.count())};
        pool.run([&](int part) {
          const IndexRange share = share_of(block.last - block.first, 1, part, threads_);
          transform_inputs(block, {block.first + share.first, block.first + share.last}, group,
                           buffers.pixels + part * pixels_size_, buffers.points);
        });
        pool.run([&](int part) { multiply_part(part, block, group, buffers); });
      }
    }
  }

  void multiply_part(int part, IndexRange block, const Group& group, const Buffers& buffers) const {
    const int row = part / partition_.columns;
    if (row >= partition_.rows) return;
    const IndexRange share = share_of(block.last - block.first, 1, part % partition_.columns, partition_.columns);
    const IndexRange spans{block.first + share.first, block.first + share.last};
    if (spans.first == spans.last) return;
    const std::int64_t tile = spans_.tiles(block.first, spans.first), tiles = spans_.tiles(spans.first, spans.last);
    T* const products = buffers.products + part * positions_ * product_position_;
    const std::size_t chunks = chunks_.size() / static_cast<std::size_t>(partition_.rows);
    for (std::size_t i = 0; i < chunks; ++i) {
      const std::size_t chunk = static_cast<std::size_t>(row) * chunks + i;
      const IndexRange outputs = chunks_[chunk];
      if (outputs.first == outputs.last) continue;
      const T* filters = nullptr;
      if (group.operands->prepared != nullptr) {
        filters =
            group.operands->prepared + group.index * group_size() + static_cast<std::int64_t>(chunk) * chunk_size_;
      } else {
        T* const made = buffers.filters + part * chunk_size_;
        transform_filters(group.operands->w, group.operands->epilogue.scale, group.index, outputs, made);
        filters = made;
      }
      Panel<T> list[most_vectors];
      const std::span<const Panel<T>> panels =
          ChannelPanels(outputs, width_, kernels_->lanes, panel_stride_).list(filters, products, list);
      for (int position = 0; position < positions_; ++position) {
        multiply_panels(*kernels_,
                        {.depth = e_.inputs,
                         .a = buffers.points + position * point_position_ + tile * point_ld_,
                         .lda = point_ld_,
                         .ldb = width_,
                         .ldc = product_ld_},
                        tiles, panels, position * filter_position_, position * product_position_, false);
      }
      transform_outputs(spans, outputs, group, buffers.pixels + part * pixels_size_, products);
    }
  }

  WinogradExtents e_;
  bool flipped_;
  const MicroKernels<T>* kernels_;
  const WinogradTransforms<T>* transforms_;
  TileSpans spans_;
  int threads_, positions_;
  std::int64_t block_spans_;
  bool apart_;
  bool filters_first_;              // whether filters are transformed before the first block
  Partition partition_;             // partition of a block
  std::vector<IndexRange> chunks_;  // outputs; each row part has the same number of chunks, some perhaps empty
  std::int64_t width_;              // columns of a panel
  std::int64_t panel_stride_, filter_position_, chunk_size_;
  std::int64_t point_ld_, point_position_, product_ld_, product_position_, pixels_size_;
};

}  // namespace lamina::eigen
