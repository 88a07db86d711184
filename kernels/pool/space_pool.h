#pragma once
// Pools with dilated windows, any pads, or a third axis. Channels of x are volumes x slices, slices innermost.

#include <cstdint>

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The windows along one axis: `count` of them, cell k of window i at i stride - before + k dilation.
struct SpaceAxis {
  int extent, count, size, stride, before, after, dilation;

  LAMINA_HOST_DEVICE int begin(int window) const { return window * stride - before; }
  LAMINA_HOST_DEVICE int cells_below(int window, int end) const {
    const int room = end - begin(window), cells = room <= 0 ? 0 : (room - 1) / dilation + 1;
    return cells < size ? cells : size;
  }
  /// Cells that count towards a mean.
  LAMINA_HOST_DEVICE int counted(int window, bool count_padding) const {
    return count_padding ? cells_below(window, extent + after) : cells_below(window, extent) - cells_below(window, 0);
  }
};

struct Space {
  SpaceAxis depth, rows, columns;
};

/// y: the maxima, or with `places` the index in x, as if it were dense, of the first of each. `winners`: of each window
/// that place in its volume; null: not wanted. Both are -1 without a cell.
template <class T>
void space_max_forward(Stream, const Space&, bool places, View<const T> x, View<T> y, std::int32_t* winners);
template <class T>
void space_max_backward(Stream, const Space&, View<const T> dy, const std::int32_t* winners, View<T> dx, bool adds);

template <class T>
void space_mean_forward(Stream, const Space&, bool count_padding, View<const T> x, View<T> y);
template <class T>
void space_mean_backward(Stream, const Space&, bool count_padding, View<const T> dy, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
