// Packing of the matrix of columns.

#include "columns.h"

#include <algorithm>
#include <map>
#include <utility>

#include "gemm.h"
#include "strided.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t prefetch_bytes = 8 * 1024;  // least distance of a prefetch, which is in whole planes

}  // namespace

Columns::Columns(const Shape& source, int rows, int cols, Size step, const std::vector<Tap>& taps, bool masked,
                 std::int64_t plane)
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

std::int64_t Columns::segment_bound(std::int64_t columns, std::int64_t width) const {
  return columns / cols_ + 2 + columns / width + 1;
}

std::int64_t Columns::staged_bound(std::int64_t columns, int lanes) const {
  if (!staged_) return 0;
  const std::int64_t grid_rows = columns / cols_ + 2;
  const std::int64_t images = columns / grid() + 2;
  return static_cast<std::int64_t>(phases_.size()) * (grid_rows + images * reach_h_) * staged_length(lanes);
}

std::int64_t Columns::staged_rows(ColumnRange range) const {
  const std::int64_t first = range.first / cols_, last = (range.first + range.count - 1) / cols_;
  return last - first + 1 + (last / rows_ - first / rows_ + 1) * reach_h_;
}

std::int64_t Columns::staged_size(ColumnRange range, int lanes) const {
  if (!staged_) return 0;
  return static_cast<std::int64_t>(phases_.size()) * staged_rows(range) * staged_length(lanes);
}

std::int64_t Columns::segments(ColumnRange range, const PanelWidths& widths, std::int64_t panel_stride,
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
    const std::int64_t from = staged_ ? (row - first_row + (image - first_image) * reach_h_) * staged_length(lanes) + q
                                      : image * source_pitch + (row - image * rows_) * cols_ + q;
    *next++ = {panel * panel_stride + within, from, count};
    j += count;
  }
  return next - out;
}

template <class T>
void Columns::stage(ColumnRange range, const Source<T>& source, std::int64_t first, std::int64_t last,
                    const MicroKernels<T>& kernels, T* to) const {
  const std::int64_t first_row = range.first / cols_, last_row = (range.first + range.count - 1) / cols_;
  const std::int64_t first_image = first_row / rows_, last_image = last_row / rows_;
  const std::int64_t length = staged_length(kernels.lanes);
  const std::int64_t plane_bytes = plane_ * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t prefetch = divide_up(prefetch_bytes, plane_bytes) * plane_;
  for (std::int64_t c = first; c < last; ++c) {
    for (const Tap& phase : phases_) {
      // Column i of the copy is column i * step + offset of the image; those in [low, high) exist.
      const bool asks = &phase == phases_.data() || (&phase - 1)->dh != phase.dh;  // once for all phases of these rows
      const int offset = phase.dw + first_w_, limit = static_cast<int>(length);
      const int low = std::clamp(ceil_div(-offset, step_.w), 0, limit);
      const int high = std::clamp(ceil_div(w_ - offset, step_.w), low, limit);
      const std::int64_t skip = std::int64_t{low} * step_.w + offset;
      for (std::int64_t image = first_image; image <= last_image; ++image) {
        const T* plane = source.data + image * source.pitch + c * plane_;
        const T* mask = source.mask == nullptr ? nullptr : source.mask + image * source.mask_pitch + c * plane_;
        const std::int64_t top = image == first_image ? first_row % rows_ : 0;
        const std::int64_t bottom = (image == last_image ? last_row % rows_ : rows_ - 1) + reach_h_;
        // Row i of the copy is row i * step + down of the image; those in [first_inside, end_inside) exist.
        const std::int64_t down = phase.dh + first_h_, end = bottom + 1;
        const std::int64_t first_inside =
            low < high ? std::clamp<std::int64_t>(ceil_div(static_cast<int>(-down), step_.h), top, end) : end;
        const std::int64_t end_inside =
            std::clamp<std::int64_t>(ceil_div(h_ - static_cast<int>(down), step_.h), first_inside, end);
        const std::int64_t at = (first_inside * step_.h + down) * w_ + skip;
        Staged<T> rows{.from = nullptr,
                       .mask = nullptr,
                       .rows = first_inside - top,
                       .row_stride = std::int64_t{step_.h} * w_,
                       .zeros = length,
                       .count = 0,
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

template void Columns::stage<float>(ColumnRange, const Source<float>&, std::int64_t, std::int64_t,
                                    const MicroKernels<float>&, float*) const;
template void Columns::stage<double>(ColumnRange, const Source<double>&, std::int64_t, std::int64_t,
                                     const MicroKernels<double>&, double*) const;

}  // namespace lamina::eigen
