// Average pooling. On every plane, y[p,q] = (sum over the window of x, zero outside) / divisor[p,q];
// dx[h,w] = sum over the windows that contain (h,w) of dy / divisor.
//
// A thread computes one output forward and one pixel backward, and gathers: sums run over rows, then columns. Images
// are along the grid's y.
// Per output, forward: its share of x once and one write. Backward: one read of dy per window and one write per pixel.

#include "pool.h"

#include "kernels/common/elements.h"
#include "kernels/common/reduce.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// The number of cells of a window that count towards the divisor, along one axis. Cells beyond the padding never
/// count.
template <class Axis>
__device__ int cells_that_count(const Axis& axis, int index, bool count_padding) {
  const Span inside = axis.pixels(index);
  if (!count_padding) return inside.last - inside.first;
  const int first = axis.begin(index), last = first + axis.window(), end = axis.extent + axis.pad;
  return (last < end ? last : end) - first;
}

template <class T, class Rows, class Columns>
__global__ void average_pool_forward_kernel(Rows rows, Columns columns, bool count_padding, View<const T> x,
                                            View<T> y) {
  for_each_pixel(y, [&](int n, int c, int p, int q, std::int64_t i) {
    const T* plane = x.at(n, c);
    const Span h = rows.pixels(p), w = columns.pixels(q);
    LongSum<Computed<T>> cells;
    for (int row = h.first; row < h.last; ++row)
      for (int column = w.first; column < w.last; ++column) cells.add(load(plane[std::int64_t{row} * x.w + column]));
    const int down = cells_that_count(rows, p, count_padding), across = cells_that_count(columns, q, count_padding);
    const auto sum = static_cast<Computed<T>>(cells.sum());
    store(y.at(n, 0)[i], sum / (static_cast<Computed<T>>(down) * static_cast<Computed<T>>(across)));
  });
}

template <class T, class Rows, class Columns>
__global__ void average_pool_backward_kernel(Rows rows, Columns columns, bool count_padding, View<const T> dy,
                                             View<T> dx, bool adds) {
  for_each_pixel(dx, [&](int n, int c, int h, int w, std::int64_t i) {
    const T* gradients = dy.at(n, c);
    const Span p_range = rows.windows(h), q_range = columns.windows(w);
    LongSum<Computed<T>> sum;
    for (int p = p_range.first; p < p_range.last; ++p) {
      const auto down = static_cast<Computed<T>>(cells_that_count(rows, p, count_padding));
      for (int q = q_range.first; q < q_range.last; ++q) {
        const auto across = static_cast<Computed<T>>(cells_that_count(columns, q, count_padding));
        sum.add(load(gradients[std::int64_t{p} * dy.w + q]) / (down * across));
      }
    }
    put(dx.at(n, 0)[i], static_cast<Computed<T>>(sum.sum()), adds);
  });
}

}  // namespace

template <class T>
void average_pool_forward(Stream stream, const Windows& windows, bool count_padding, View<const T> x, View<T> y) {
  with_axes(windows, [&](auto rows, auto columns) {
    launch(LAMINA_KERNEL(average_pool_forward_kernel<T, decltype(rows), decltype(columns)>), grid_of_elements(y),
           elements_per_block, 0, stream, rows, columns, count_padding, x, y);
  });
}

template <class T>
void average_pool_backward(Stream stream, const Windows& windows, bool count_padding, View<const T> dy, View<T> dx,
                           bool adds) {
  with_axes(windows, [&](auto rows, auto columns) {
    launch(LAMINA_KERNEL(average_pool_backward_kernel<T, decltype(rows), decltype(columns)>), grid_of_elements(dx),
           elements_per_block, 0, stream, rows, columns, count_padding, dy, dx, adds);
  });
}

#define LAMINA_INSTANTIATE(T)                                                               \
  template void average_pool_forward(Stream, const Windows&, bool, View<const T>, View<T>); \
  template void average_pool_backward(Stream, const Windows&, bool, View<const T>, View<T>, bool);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
