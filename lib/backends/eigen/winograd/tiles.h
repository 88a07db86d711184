#pragma once
// A 3x3 or 5x5 convolution with stride 1 by Winograd's minimal filtering, over blocks of tiles: the problem that a
// forward pass, a data gradient and a weight gradient share, and how tiles are divided into spans.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "lamina/shape.h"
#include "lib/backends/eigen/gemm/columns.h"
#include "lib/backends/eigen/gemm/gemm.h"
#include "lib/backends/eigen/micro_kernels/micro_kernels.h"

namespace lamina::eigen {

/// One group: outputs[k][p][q] = sum over c, r, s of inputs[c][p + r - pad_h][q + s - pad_w] * filters[k][c][r][s].
struct WinogradExtents {
  int images, groups;
  int inputs, outputs;  ///< channels of a group
  int in_h, in_w, out_h, out_w;
  int pad_h, pad_w;  ///< padding; negative: rows and columns are left out
  int taps;          ///< extent of a filter: 3 or 5
  std::int64_t in_plane() const { return std::int64_t{in_h} * in_w; }
  std::int64_t out_plane() const { return std::int64_t{out_h} * out_w; }
};

/// Tiles side by side in an image.
struct TileSpan {
  std::int64_t image;
  int h, w;  ///< position of the first tile's first output
  std::int64_t tiles;
};

/// All tiles of a batch, as spans that are numbered along rows, then down an image, then through images.
class TileSpans {
 public:
  TileSpans(const WinogradExtents& e, int tile) : tile_(tile) {
    constexpr std::int64_t longest = 64;
    tiles_w_ = divide_up(e.out_w, tile);
    tiles_h_ = divide_up(e.out_h, tile);
    segments_ = divide_up(tiles_w_, longest);
    count_ = e.images * tiles_h_ * segments_;
  }
  std::int64_t count() const { return count_; }
  std::int64_t longest() const { return divide_up(tiles_w_, segments_); }  ///< most tiles of a span
  std::int64_t tiles(std::int64_t first, std::int64_t last) const {        ///< tiles of spans [first, last)
    return tiles_before(last) - tiles_before(first);
  }
  TileSpan operator[](std::int64_t i) const {
    const std::int64_t row = i / segments_, first = tiles_before(i) - row * tiles_w_;
    return {row / tiles_h_, static_cast<int>(row % tiles_h_) * tile_, static_cast<int>(first) * tile_, tiles(i, i + 1)};
  }

 private:
  std::int64_t tiles_before(std::int64_t span) const {
    return span / segments_ * tiles_w_ + tiles_w_ * (span % segments_) / segments_;
  }

  int tile_;
  std::int64_t tiles_w_, tiles_h_, segments_, count_;
};

/// The transforms of tiles and filters of these sizes, of one element type.
template <class T>
const WinogradTransforms<T>& transforms_of(const MicroKernels<T>& kernels, int tile, int taps) {
  const WinogradKernels<T>& of = kernels.winograd;
  return taps == 5 ? of.f2x2_5x5 : tile == 2 ? of.f2x2_3x3 : of.f4x4_3x3;
}

/// Number of columns of the panels that hold these channels.
template <class T>
std::int64_t panel_width(std::int64_t channels, const MicroKernels<T>& kernels) {
  return panel_vectors(divide_up(channels, kernels.lanes), kernels.vectors) * kernels.lanes;
}

/// Panels for vectors of channels: the place of a vector, and a list of the panels for products.
class ChannelPanels {
 public:
  /// A panel has up to `width` channels in vectors of `lanes`; panels are `stride` elements apart.
  ChannelPanels(IndexRange channels, std::int64_t width, std::int64_t lanes, std::int64_t stride)
      : vectors_(divide_up(channels.last - channels.first, lanes)),
        most_(width / lanes),
        lanes_(lanes),
        stride_(stride) {
    // The last two panels are narrower if one vector alone would be left.
    narrow_ = most_ > 2 && vectors_ > most_ && vectors_ % most_ == 1 ? vectors_ - most_ - 1 : vectors_;
  }

  /// Elements from the first row of the first panel to the first row of this vector.
  std::int64_t at(std::int64_t vector) const {
    const bool narrow = vector >= narrow_;
    const std::int64_t width = narrow ? most_ - 1 : most_, within = narrow ? vector - narrow_ : vector;
    return ((narrow ? narrow_ / most_ : 0) + within / width) * stride_ + within % width * lanes_;
  }

  template <class T>
  std::span<const Panel<T>> list(const T* panels, T* c, Panel<T>* out) const {
    return list_channels(vectors_ * lanes_, most_, lanes_, panels, stride_, c, out);
  }

 private:
  std::int64_t vectors_, most_, lanes_, stride_, narrow_;
};

/// c = a * panels (+ c), in whole vectors. `tile` has the fields that all register tiles share. b and c begin
/// `b_offset` and `c_offset` behind those of a panel. If a is not given as columns, its rows are prefetched: they come
/// from the L3 cache, and this loop reads them first. For many shallow tiles: less work per tile than in multiply().
template <class T>
void multiply_panels(const MicroKernels<T>& kernels, Tile<T> tile, std::int64_t rows, std::span<const Panel<T>> panels,
                     std::int64_t b_offset, std::int64_t c_offset, bool a_is_columns) {
  const T* const a = tile.a;
  for (std::int64_t i = 0; i < rows; i += kernels.rows) {
    tile.rows = static_cast<int>(std::min<std::int64_t>(kernels.rows, rows - i));
    tile.a = a + (a_is_columns ? i : i * tile.lda);
    tile.prefetch.a = a_is_columns ? 0 : kernels.rows * tile.lda;
    const auto& functions = (a_is_columns ? kernels.tile_of_columns : kernels.tile)[tile.rows <= kernels.rows / 2];
    for (const Panel<T>& panel : panels) {
      tile.b = panel.b + b_offset;
      tile.c = panel.c + c_offset + i * tile.ldc;
      functions[panel.vectors - 1](tile);
      tile.prefetch.a = 0;
    }
  }
}

/// Planes that filtering reads or writes: of T or, if T is float, of bf16.
struct Planes {
  const void* data;
  std::int64_t pitch;
  const void* mask = nullptr;  ///< see Source::mask
  std::int64_t mask_pitch = 0;
  DType dtype;

  explicit Planes(const Tensor& tensor) : data(tensor.data), pitch(tensor.pitch), dtype(tensor.dtype) {}

  /// The same planes, each image from its element number `elements` on.
  Planes further(std::int64_t elements) const {
    Planes moved = *this;
    const std::int64_t bytes = elements * static_cast<std::int64_t>(size_of(dtype));
    moved.data = static_cast<const std::byte*>(data) + bytes;
    if (mask != nullptr) moved.mask = static_cast<const std::byte*>(mask) + bytes;
    return moved;
  }

  /// Calls work(source) with the planes as a Source of their type.
  template <class T, class Work>
  void visit(Work&& work) const {
    if constexpr (std::is_same_v<T, float>)
      if (dtype == DType::bf16) return work(as<std::uint16_t>());
    work(as<T>());
  }

 private:
  template <class E>
  Source<E> as() const {
    return {static_cast<const E*>(data), pitch, static_cast<const E*>(mask), mask_pitch};
  }
};

/// Windows of planes: a patch of the source, or a tile of the result, for each tile of a span.
struct TileWindows {
  int h, w;          ///< extents of a plane
  int pad_h, pad_w;  ///< rows and columns from the first output to the window's first element
  int rows, tile;    ///< extent of the patch or the tile; columns from one window to the next
};
inline TileWindows input_windows(const WinogradExtents& e, int tile) {
  return {e.in_h, e.in_w, e.pad_h, e.pad_w, tile + e.taps - 1, tile};
}
inline TileWindows output_windows(const WinogradExtents& e, int tile) { return {e.out_h, e.out_w, 0, 0, tile, tile}; }

/// Calls work(window, channel, tile, tiles) span by span, and in a span for `lanes` channels at a time. `tile` is the
/// number of tiles in the spans before. A window prefetches the next one: of the next channels or, after the last
/// channels, of the next span.
template <class T, class Work>
void for_each_window(const Planes& planes, const TileWindows& its, const TileSpans& spans, IndexRange range,
                     IndexRange channels, int lanes, const Work& work) {
  const std::int64_t plane = std::int64_t{its.h} * its.w;
  planes.visit<T>([&]<class E>(const Source<E>& source) {
    for (std::int64_t i = range.first, tile = 0; i < range.last; ++i) {
      const TileSpan span = spans[i], next = i + 1 == spans.count() ? span : spans[i + 1];
      const std::int64_t to_next_span =
          (next.image - span.image) * source.pitch + std::int64_t{next.h - span.h} * its.w + (next.w - span.w);
      for (std::int64_t channel = channels.first; channel < channels.last; channel += lanes) {
        const std::int64_t at = channel * plane;
        PixelWindow<E> window{
            .data = const_cast<E*>(source.data) + span.image * source.pitch + at,
            .mask = source.mask == nullptr ? nullptr : source.mask + span.image * source.mask_pitch + at,
            .plane = plane,
            .channels = static_cast<int>(std::min<std::int64_t>(lanes, channels.last - channel)),
            .h = its.h,
            .w = its.w,
            .first_h = span.h - its.pad_h,
            .first_w = span.w - its.pad_w,
            .rows = its.rows,
            .cols = static_cast<int>((span.tiles - 1) * its.tile) + its.rows};
        if (channel + lanes < channels.last) {
          window.prefetch = lanes * plane;
        } else if (i + 1 < spans.count()) {
          window.prefetch = to_next_span - (channel - channels.first) * plane;
        }
        work(window, channel, tile, span.tiles);
      }
      tile += span.tiles;
    }
  });
}

}  // namespace lamina::eigen
