// Max pooling: y[p,q] = max over r,s of x[p*stride - pad + r, q*stride - pad + s] on every plane; padding never wins.
// dx[h,w] = sum of dy over the windows whose first maximum is (h,w).
//
// Forward, a thread computes one output: it reads its window row by row; neighbours share cells through the L1 cache.
// Backward, a thread computes one pixel: it reads the maximum's position in every window that contains it, and adds the
// dy of the windows whose position is this pixel, in order of rows, then columns. Images are along the grid's y.
// Memory, forward: x is read once; y and, for gradients, a position (1 byte; 4 for windows of more than 256 cells) are
// written per output. Backward: dy and a position are read per output; dx is written per pixel.

#include "pool.h"

#include <cstdint>
#include <type_traits>

#include "kernels/common/elements.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T, class Place, class Rows, class Columns>
__global__ void max_pool_forward_kernel(Rows rows, Columns columns, View<const T> x, View<T> y, Place* places) {
  for_each_pixel(y, [&](int n, int c, int p, int q, std::int64_t i) {
    const T* plane = x.at(n, c);
    const Span h = rows.pixels(p), w = columns.pixels(q);
    const int begin_h = rows.begin(p), begin_w = columns.begin(q);
    Computed<T> largest = load(plane[std::int64_t{h.first} * x.w + w.first]);
    int place = (h.first - begin_h) * columns.window() + w.first - begin_w;
    for (int r = 0; r < rows.window(); ++r) {
      const int row = begin_h + r;
      if (row < h.first || row >= h.last) continue;
      for (int s = 0; s < columns.window(); ++s) {
        const int column = begin_w + s;
        if (column < w.first || column >= w.last) continue;
        const Computed<T> value = load(plane[std::int64_t{row} * x.w + column]);
        // The value is greater, or a NaN. A NaN stays the largest, so the first one wins.
        if (!(value <= largest) && largest == largest) {
          largest = value;
          place = r * columns.window() + s;
        }
      }
    }
    store(y.at(n, 0)[i], largest);
    if (places != nullptr) places[n * y.image() + i] = static_cast<Place>(place);
  });
}

template <class T, class Place, class Rows, class Columns>
__global__ void max_pool_backward_kernel(Rows rows, Columns columns, View<const T> dy, const Place* places, View<T> dx,
                                         bool adds) {
  for_each_pixel(dx, [&](int n, int c, int h, int w, std::int64_t i) {
    const T* gradients = dy.at(n, c);
    const Place* winners = places + n * dy.image() + c * dy.plane();
    const Span p_range = rows.windows(h), q_range = columns.windows(w);
    Computed<T> sum = 0;
    for (int p = p_range.first; p < p_range.last; ++p) {
      const int above = (h - rows.begin(p)) * columns.window();
      for (int q = q_range.first; q < q_range.last; ++q) {
        const std::int64_t window = std::int64_t{p} * dy.w + q;
        if (static_cast<int>(winners[window]) == above + w - columns.begin(q)) sum += load(gradients[window]);
      }
    }
    put(dx.at(n, 0)[i], sum, adds);
  });
}

/// Whether there are kernels for the usual window sizes, which are small and so have places of 1 byte.
template <class Place>
constexpr bool fixed_windows = std::is_same_v<Place, std::uint8_t>;

}  // namespace

template <class T, class Place>
void max_pool_forward(Stream stream, const Windows& windows, View<const T> x, View<T> y, Place* places) {
  with_axes<fixed_windows<Place>>(windows, [&](auto rows, auto columns) {
    launch(LAMINA_KERNEL(max_pool_forward_kernel<T, Place, decltype(rows), decltype(columns)>), grid_of_elements(y),
           elements_per_block, 0, stream, rows, columns, x, y, places);
  });
}

template <class T, class Place>
void max_pool_backward(Stream stream, const Windows& windows, View<const T> dy, const Place* places, View<T> dx,
                       bool adds) {
  with_axes<fixed_windows<Place>>(windows, [&](auto rows, auto columns) {
    launch(LAMINA_KERNEL(max_pool_backward_kernel<T, Place, decltype(rows), decltype(columns)>), grid_of_elements(dx),
           elements_per_block, 0, stream, rows, columns, dy, places, dx, adds);
  });
}

#define LAMINA_MAX_POOL(T, Place)                                                         \
  template void max_pool_forward(Stream, const Windows&, View<const T>, View<T>, Place*); \
  template void max_pool_backward(Stream, const Windows&, View<const T>, const Place*, View<T>, bool);
#define LAMINA_INSTANTIATE(T) LAMINA_MAX_POOL(T, std::uint8_t) LAMINA_MAX_POOL(T, std::int32_t)
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
