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

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "lamina/op.h"
#include "lib/backends/eigen/micro_kernels/micro_kernels.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::eigen {

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

/// Images from which columns are taken. Elements count as 0 where a given `mask` is not above 0.
template <class T>
struct Source {
  const T* data;
  std::int64_t pitch;
  const T* mask = nullptr;
  std::int64_t mask_pitch = 0;

  /// The images from this one on.
  Source from(std::int64_t image) const {
    return {data + image * pitch, pitch, mask == nullptr ? nullptr : mask + image * mask_pitch, mask_pitch};
  }
  /// The same images, `elements` further on in each.
  Source further(std::int64_t elements) const {
    return {data + elements, pitch, mask == nullptr ? nullptr : mask + elements, mask_pitch};
  }
};

/// Inputs and outputs of a weight gradient.
template <class T>
struct WeightGradientOperands {
  Source<T> x;
  Source<T> dy;  ///< its mask is honoured
  T* dw;         ///< null: not wanted
  T* db;         ///< null: not wanted
  bool add;
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
  /// `source` is n images of c channels (of one group). `rows` x `cols` is the grid of p and q. `plane` is the elements
  /// from channel to channel if `source` has only some rows of each, else 0.
  Columns(const Shape& source, int rows, int cols, Size step, const std::vector<Tap>& taps, bool masked,
          std::int64_t plane = 0);

  /// The part with `columns` columns of each image, if nothing is copied out of the image. An offset into the source
  /// selects these columns.
  Columns part(std::int64_t columns) const {
    return {
        {images_, channels_, 1, static_cast<int>(columns)}, 1, static_cast<int>(columns), 1, {{0, 0}}, false, plane_};
  }

  std::int64_t depth() const { return std::int64_t{channels_} * taps(); }  ///< rows of the matrix
  std::int64_t count() const { return std::int64_t{images_} * rows_ * cols_; }
  std::int64_t taps() const { return static_cast<std::int64_t>(taps_.size()); }
  std::int64_t grid() const { return std::int64_t{rows_} * cols_; }  ///< columns of one image

  /// The largest number of segments in a range of this many columns, in panels of this width.
  std::int64_t segment_bound(std::int64_t columns, std::int64_t width) const;
  /// The most elements in the copy of one channel of a range of this many columns; 0 if nothing is copied.
  std::int64_t staged_bound(std::int64_t columns, int lanes) const;

  /// Lists the runs of a range, from the source or its copy to panels that are `panel_stride` apart. Returns the number
  /// of runs.
  std::int64_t segments(ColumnRange, const PanelWidths&, std::int64_t panel_stride, std::int64_t source_pitch,
                        int lanes, Segment* out) const;

  bool staged() const { return staged_; }
  std::int64_t channels() const { return channels_; }
  std::int64_t plane() const { return plane_; }  ///< elements from channel to channel
  /// Copies channels [first, last) of the range's source to `to`, staged_size() elements for each.
  template <class T>
  void stage(ColumnRange, const Source<T>&, std::int64_t first, std::int64_t last, const MicroKernels<T>&, T* to) const;
  std::int64_t staged_size(ColumnRange, int lanes) const;

  /// Offset of the run of row (channel, tap) from the copy's first channel or from the source.
  std::int64_t start(std::int64_t channel, std::int64_t tap, std::int64_t staged_size, std::int64_t staged_rows,
                     int lanes) const {
    if (!staged_) return channel * plane_;
    const Place& place = taps_[static_cast<std::size_t>(tap)];
    return channel * staged_size + (place.phase * staged_rows + place.row) * staged_length(lanes) + place.column;
  }
  std::int64_t staged_rows(ColumnRange) const;

 private:
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
