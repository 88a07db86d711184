#pragma once
// Where the columns of a product lie in the planes of its result.

#include <algorithm>
#include <cstdint>

#include "gemm.h"

namespace lamina::eigen {

/// Place of the result: column (n, p, q) of row m is at data[n * pitch + m * plane + p * row_pitch + q * step], with q
/// below row_length. If h and w are given, a row's plane is h x w, and its elements without a column are set to 0;
/// `add` must be false then.
template <class T>
struct GridOutput {
  T* data;
  std::int64_t pitch, plane, row_length, row_pitch, step;
  std::int64_t h = 0, w = 0;
};

/// The places of a section's columns in the output.
template <class T>
struct GridPlace {
  std::int64_t length, offset;  // columns of the section in an image: number and first
  GridOutput<T> output;

  bool whole() const { return output.step == 1 && output.row_pitch == output.row_length; }  // an image is one run

  T* direct(std::int64_t column, std::int64_t count) const {
    const std::int64_t image = column / length, within = column - image * length;
    if (output.h != 0 || output.step != 1 || within + count > length) return nullptr;
    const std::int64_t at = offset + within;
    T* const to = output.data + image * output.pitch;
    if (whole()) return to + at;
    const std::int64_t row = at / output.row_length, q = at - row * output.row_length;
    return q + count > output.row_length ? nullptr : to + row * output.row_pitch + q;
  }

  void store(OutputTile<T> tile, std::int64_t row, std::int64_t column, const MicroKernels<T>& kernels) const {
    const std::int64_t count = tile.count;
    tile.step = output.step;
    for (std::int64_t j = 0; j < count; j += tile.count, tile.from += tile.count) {
      const std::int64_t image = (column + j) / length, within = (column + j) - image * length;
      const std::int64_t at = offset + within, p = at / output.row_length, q = at - p * output.row_length;
      tile.count = std::min({whole() ? length - within : output.row_length - q, length - within, count - j});
      tile.to = output.data + image * output.pitch + row * output.plane + p * output.row_pitch + q * output.step;
      if (output.h != 0) {
        const std::int64_t step_h = output.row_pitch / output.w;
        tile.width = std::min(tile.count * output.step, output.w - q * output.step);
        tile.below = std::min(step_h, output.h - p * step_h) - 1;
        tile.pitch = output.w;
      }
      store_finished(tile, kernels);
    }
  }
};

}  // namespace lamina::eigen
