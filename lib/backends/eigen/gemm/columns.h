#pragma once
// The matrix of columns (im2col) of a convolution, which multiplies the weights. It is packed from the image in blocks.
//
// The element of row (c, t) and column (n, p, q) is the source element of image n, channel c, row p * step + dh[t] and
// column q * step + dw[t], or zero outside the plane. t runs over the taps. A forward pass has the taps
// r * dilation - pad. A data gradient is one such product for every residue of the input position modulo the stride,
// with the taps that reach it. The columns of all images lie side by side, so that small planes make wide products.
//
// Unless the only tap is the identity, a block of channels is first copied out of the image, with its border of zeros
// and sorted by residues modulo the step. A tap then reads consecutive elements in every row.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "lamina/op.h"
#include "lib/backends/eigen/micro_kernels/micro_kernels.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::eigen {

/// a / b rounded up, for b > 0; a may be negative.
constexpr int ceil_div(int a, int b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

/// The integers [first, last).
struct Range {
  int first, last;
};

/// The i in [0, count) for which low <= i * step + offset < high.
constexpr Range range_within(int count, int step, int offset, int low, int high) {
  const int first = std::clamp(ceil_div(low - offset, step), 0, count);
  return {first, std::clamp(ceil_div(high - offset, step), first, count)};
}

/// Position that a tap reads, relative to p * step and q * step.
struct Tap {
  int dh, dw;
};

/// The taps of a convolution's kernel, row by row.
inline std::vector<Tap> taps_of(const Conv& op) {
  std::vector<Tap> taps;
  for (int r = 0; r < op.kernel.h; ++r)
    for (int s = 0; s < op.kernel.w; ++s) taps.push_back({r * op.dilation.h - op.pad.h, s * op.dilation.w - op.pad.w});
  return taps;
}

/// A tap along one axis: its index in the kernel, and the offset from a position to the element that it reads.
struct AxisTap {
  int index, offset;
};

/// The taps that reach positions of x from dy, listed by the residue of these positions modulo the stride. Only
/// residues below `extent` that some tap reaches are listed. Position i of a residue reads dy at i + offset.
inline std::map<int, std::vector<AxisTap>> taps_of_residues(int extent, int kernel, int stride, int pad, int dilation) {
  std::map<int, std::vector<AxisTap>> taps;
  for (int i = 0; i < kernel; ++i) {
    const int first = i * dilation - pad, residue = first % stride + (first % stride < 0 ? stride : 0);
    if (residue < extent) taps[residue].push_back({i, (residue - first) / stride});
  }
  return taps;
}

/// Images from which columns are taken. If there is a mask, elements count as 0 where it is not above 0.
template <class T>
struct Source {
  const T* data;
  std::int64_t pitch;
  const T* mask = nullptr;
  std::int64_t mask_pitch = 0;

  /// The images from number `image` on.
  Source from(std::int64_t image) const {
    return {data + image * pitch, pitch, mask == nullptr ? nullptr : mask + image * mask_pitch, mask_pitch};
  }
  /// The same images, each from its element number `elements` on.
  Source further(std::int64_t elements) const {
    return {data + elements, pitch, mask == nullptr ? nullptr : mask + elements, mask_pitch};
  }
};

/// A range of columns [first, first + count).
struct ColumnRange {
  std::int64_t first, count;
};

/// The number of columns in the panels of a range: `wide`, and `narrow` from the range's column `narrow_from` on.
struct PanelWidths {
  std::int64_t wide;
  std::int64_t narrow_from = std::numeric_limits<std::int64_t>::max();
  std::int64_t narrow = wide;
};

class Columns {
 public:
  /// `source` is n images of c channels (of one group). `rows` x `cols` is the grid of p and q. If `source` has only
  /// some rows of each channel, `plane` is the number of elements from channel to channel; otherwise it is 0.
  Columns(const Shape& source, int rows, int cols, Size step, const std::vector<Tap>& taps, bool masked,
          std::int64_t plane = 0)
      : images_(source.n),
        channels_(source.c),
        h_(source.h),
        w_(source.w),
        rows_(rows),
        cols_(cols),
        step_(step),
        plane_(plane == 0 ? source.plane() : plane) {
    const bool identity =
        taps.size() == 1 && taps[0].dh == 0 && taps[0].dw == 0 && step == Size(1) && rows == h_ && cols == w_;
    staged_ = !identity || masked;
    if (!staged_) {  // a plane without structure: one long row
      cols_ = rows * cols;
      rows_ = 1;
      w_ *= h_;
      h_ = 1;
    }
    first_h_ = taps[0].dh;
    first_w_ = taps[0].dw;
    for (const Tap& tap : taps) {
      first_h_ = std::min(first_h_, tap.dh);
      first_w_ = std::min(first_w_, tap.dw);
    }
    std::map<std::pair<int, int>, std::ptrdiff_t> known;  // index of each phase
    for (const Tap& tap : taps) {
      const int h = tap.dh - first_h_, w = tap.dw - first_w_;
      const Tap phase{h % step.h, w % step.w};
      const auto [found, is_new] =
          known.emplace(std::pair(phase.dh, phase.dw), static_cast<std::ptrdiff_t>(known.size()));
      taps_.push_back({found->second, h / step.h, w / step.w});
      if (is_new) phases_.push_back(phase);
      reach_h_ = std::max(reach_h_, h / step.h);
      reach_w_ = std::max(reach_w_, w / step.w);
    }
  }

  /// The part with `columns` columns of each image. Nothing may be copied out of the image. The caller selects these
  /// columns by an offset into the source.
  Columns part(std::int64_t columns) const {
    return {
        {images_, channels_, 1, static_cast<int>(columns)}, 1, static_cast<int>(columns), 1, {{0, 0}}, false, plane_};
  }

  std::int64_t depth() const { return std::int64_t{channels_} * taps(); }  ///< rows of the matrix
  std::int64_t count() const { return std::int64_t{images_} * rows_ * cols_; }
  std::int64_t taps() const { return static_cast<std::int64_t>(taps_.size()); }
  std::int64_t grid() const { return std::int64_t{rows_} * cols_; }  ///< columns of one image

  /// The largest number of segments in a range of this many columns, in panels of this width.
  std::int64_t segment_bound(std::int64_t columns, std::int64_t width) const {
    return columns / cols_ + 2 + columns / width + 1;
  }

  /// The most elements in the copy of one channel of a range of this many columns; 0 if nothing is copied.
  std::int64_t staged_bound(std::int64_t columns, int lanes) const {
    if (!staged_) return 0;
    const std::int64_t grid_rows = columns / cols_ + 2;
    const std::int64_t images = columns / grid() + 2;
    return static_cast<std::int64_t>(phases_.size()) * (grid_rows + images * reach_h_) * staged_length(lanes);
  }

  /// Lists the runs of a range, from the source or its copy to panels that are `panel_stride` apart. Returns the number
  /// of runs.
  std::int64_t segments(ColumnRange range, const PanelWidths& widths, std::int64_t panel_stride,
                        std::int64_t source_pitch, int lanes, Segment* out) const {
    const std::int64_t first_row = range.first / cols_, first_image = first_row / rows_;
    Segment* next = out;
    for (std::int64_t j = 0; j < range.count;) {
      const std::int64_t row = (range.first + j) / cols_, q = (range.first + j) % cols_;
      const std::int64_t image = row / rows_;
      const bool narrow = j >= widths.narrow_from;
      const std::int64_t width = narrow ? widths.narrow : widths.wide, before = narrow ? widths.narrow_from : 0;
      const std::int64_t panel = before / widths.wide + (j - before) / width, within = (j - before) % width;
      const std::int64_t count = std::min({cols_ - q, width - within, range.count - j});
      // Every image of the copy has reach_h_ rows more than the grid.
      const std::int64_t from = staged_
                                    ? (row - first_row + (image - first_image) * reach_h_) * staged_length(lanes) + q
                                    : image * source_pitch + (row - image * rows_) * cols_ + q;
      *next++ = {panel * panel_stride + within, from, count};
      j += count;
    }
    return next - out;
  }

  bool staged() const { return staged_; }
  std::int64_t channels() const { return channels_; }
  std::int64_t plane() const { return plane_; }  ///< elements from channel to channel
  /// Copies channels [first, last) of the range's source to `to`, staged_size() elements for each.
  template <class T>
  void stage(ColumnRange range, const Source<T>& source, std::int64_t first, std::int64_t last,
             const MicroKernels<T>& kernels, T* to) const {
    const std::int64_t first_row = range.first / cols_, last_row = (range.first + range.count - 1) / cols_;
    const std::int64_t first_image = first_row / rows_, last_image = last_row / rows_;
    const std::int64_t length = staged_length(kernels.lanes);
    const std::int64_t plane_bytes = plane_ * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t prefetch = divide_up(prefetch_bytes, plane_bytes) * plane_;
    for (std::int64_t c = first; c < last; ++c) {
      for (const Tap& phase : phases_) {
        // The first of the phases that read these rows prefetches for all.
        const bool asks = &phase == phases_.data() || (&phase - 1)->dh != phase.dh;
        // Column i of the copy is column i * step + offset of the image. It exists for i in [low, high).
        const int offset = phase.dw + first_w_, limit = static_cast<int>(length);
        const int low = std::clamp(ceil_div(-offset, step_.w), 0, limit);
        const int high = std::clamp(ceil_div(w_ - offset, step_.w), low, limit);
        const std::int64_t skip = std::int64_t{low} * step_.w + offset;
        for (std::int64_t image = first_image; image <= last_image; ++image) {
          const T* plane = source.data + image * source.pitch + c * plane_;
          const T* mask = source.mask == nullptr ? nullptr : source.mask + image * source.mask_pitch + c * plane_;
          const std::int64_t top = image == first_image ? first_row % rows_ : 0;
          const std::int64_t bottom = (image == last_image ? last_row % rows_ : rows_ - 1) + reach_h_;
          // Row i of the copy is row i * step + down of the image. It exists for i in [first_inside, end_inside).
          const std::int64_t down = phase.dh + first_h_, end = bottom + 1;
          const std::int64_t first_inside =
              low < high ? std::clamp<std::int64_t>(ceil_div(static_cast<int>(-down), step_.h), top, end) : end;
          const std::int64_t end_inside =
              std::clamp<std::int64_t>(ceil_div(h_ - static_cast<int>(down), step_.h), first_inside, end);
          const std::int64_t at = (first_inside * step_.h + down) * w_ + skip;
          Staged<T> rows{.rows = first_inside - top,
                         .row_stride = std::int64_t{step_.h} * w_,
                         .zeros = length,
                         .length = length,
                         .step = step_.w};
          kernels.stage(to, rows);
          to += rows.rows * length;
          if (first_inside < end_inside) {
            kernels.stage(to, {.from = plane + at,
                               .mask = mask == nullptr ? nullptr : mask + at,
                               .rows = end_inside - first_inside,
                               .row_stride = rows.row_stride,
                               .zeros = low,
                               .count = high - low,
                               .length = length,
                               .step = step_.w,
                               .prefetch = asks ? prefetch : 0});
            to += (end_inside - first_inside) * length;
          }
          rows.rows = end - end_inside;
          kernels.stage(to, rows);
          to += rows.rows * length;
        }
      }
    }
  }

  std::int64_t staged_size(ColumnRange range, int lanes) const {
    if (!staged_) return 0;
    return static_cast<std::int64_t>(phases_.size()) * staged_rows(range) * staged_length(lanes);
  }

  /// Offset of the run of row (channel, tap), counted from the first channel of the copy or of the source.
  std::int64_t start(std::int64_t channel, std::int64_t tap, std::int64_t staged_size, std::int64_t staged_rows,
                     int lanes) const {
    if (!staged_) return channel * plane_;
    const Place& place = taps_[static_cast<std::size_t>(tap)];
    return channel * staged_size + (place.phase * staged_rows + place.row) * staged_length(lanes) + place.column;
  }

  std::int64_t staged_rows(ColumnRange range) const {
    const std::int64_t first = range.first / cols_, last = (range.first + range.count - 1) / cols_;
    return last - first + 1 + (last / rows_ - first / rows_ + 1) * reach_h_;
  }

 private:
  static constexpr std::int64_t prefetch_bytes = 8 * 1024;  // distance of a prefetch, rounded up to whole planes

  struct Place {
    std::int64_t phase, row, column;
  };
  std::int64_t staged_length(int lanes) const { return round_up(cols_ + reach_w_, lanes); }

  int images_, channels_, h_, w_, rows_, cols_;
  Size step_;
  std::int64_t plane_;
  bool staged_;
  int first_h_ = 0, first_w_ = 0;  // least dh and dw
  int reach_h_ = 0, reach_w_ = 0;  // rows and columns beyond the grid that taps reach, in steps
  std::vector<Tap> phases_;        // residues that occur
  std::vector<Place> taps_;
};

}  // namespace lamina::eigen
