// Pools over volumes: y[d,p,q] of a volume = maximum or mean of x[d stride - before + k dilation, ...] over the cells
// of a window that are inside. dx = sum, over the windows that have the cell, of dy where the cell won, or of dy over
// the cells that count.
//
// Forward, a thread computes one output and reads its window cell by cell. Backward, a thread computes one element of
// dx and looks at the window that has it as cell k, for every k of the three axes.
// Per output: its share of x once, one write of y and one of a place (4 bytes).

#include "space_pool.h"

#include <limits>

#include "kernels/common/planes.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// Calls visit(slice, row, column) for the cells of a window that are inside, in their order.
template <class Visit>
__device__ void for_each_cell(const Space& space, int d, int p, int q, Visit visit) {
  for (int i = 0; i < space.depth.size; ++i) {
    const int slice = space.depth.begin(d) + i * space.depth.dilation;
    if (slice < 0 || slice >= space.depth.extent) continue;
    for (int r = 0; r < space.rows.size; ++r) {
      const int row = space.rows.begin(p) + r * space.rows.dilation;
      if (row < 0 || row >= space.rows.extent) continue;
      for (int s = 0; s < space.columns.size; ++s) {
        const int column = space.columns.begin(q) + s * space.columns.dilation;
        if (column >= 0 && column < space.columns.extent) visit(slice, row, column);
      }
    }
  }
}

/// The window that has the position as cell k, or -1.
__device__ inline int window_of(const SpaceAxis& axis, int position, int k) {
  const int begin = position + axis.before - k * axis.dilation;
  if (begin < 0 || begin % axis.stride != 0) return -1;
  const int window = begin / axis.stride;
  return window < axis.count ? window : -1;
}

/// Calls visit(d, p, q) for the windows that have the cell.
template <class Visit>
__device__ void for_each_window(const Space& space, int slice, int row, int column, Visit visit) {
  for (int i = space.depth.size - 1; i >= 0; --i) {
    const int d = window_of(space.depth, slice, i);
    if (d < 0) continue;
    for (int r = space.rows.size - 1; r >= 0; --r) {
      const int p = window_of(space.rows, row, r);
      if (p < 0) continue;
      for (int s = space.columns.size - 1; s >= 0; --s) {
        const int q = window_of(space.columns, column, s);
        if (q >= 0) visit(d, p, q);
      }
    }
  }
}

__device__ inline std::int64_t counted(const Space& space, bool count_padding, int d, int p, int q) {
  return std::int64_t{1} * space.depth.counted(d, count_padding) * space.rows.counted(p, count_padding) *
         space.columns.counted(q, count_padding);
}

template <class T>
__global__ void space_max_forward_kernel(Space space, bool places, View<const T> x, View<T> y, std::int32_t* winners) {
  for_each_pixel(y, [&](int n, int c, int p, int q, std::int64_t i) {
    const int volume = c / space.depth.count, d = c - volume * space.depth.count;
    const int slice_0 = volume * space.depth.extent;
    const T* from = x.at(n, slice_0);
    T largest = -std::numeric_limits<T>::infinity();
    std::int32_t winner = -1;
    for_each_cell(space, d, p, q, [&](int slice, int row, int column) {
      const std::int32_t place = (slice * x.h + row) * x.w + column;
      const T value = from[place];
      // Greater, or a NaN; a NaN stays, so that the first one wins.
      if (winner >= 0 && (value <= largest || largest != largest)) return;
      largest = value;
      winner = place;
    });
    if (places) largest = static_cast<T>(winner < 0 ? -1 : n * x.image() + slice_0 * x.plane() + winner);
    y.at(n, 0)[i] = largest;
    if (winners != nullptr) winners[n * y.image() + i] = winner;
  });
}

template <class T>
__global__ void space_max_backward_kernel(Space space, View<const T> dy, const std::int32_t* winners, View<T> dx,
                                          bool adds) {
  for_each_pixel(dx, [&](int n, int c, int h, int w, std::int64_t i) {
    const int volume = c / space.depth.extent, slice = c - volume * space.depth.extent;
    const std::int64_t first = std::int64_t{volume} * space.depth.count * dy.plane();
    const T* gradients = dy.at(n, 0) + first;
    const std::int32_t* places = winners + n * dy.image() + first;
    const std::int32_t own = (slice * dx.h + h) * dx.w + w;
    T sum = 0;
    for_each_window(space, slice, h, w, [&](int d, int p, int q) {
      const std::int64_t window = (std::int64_t{d} * dy.h + p) * dy.w + q;
      if (places[window] == own) sum += gradients[window];
    });
    put(dx.at(n, 0)[i], sum, adds);
  });
}

template <class T>
__global__ void space_mean_forward_kernel(Space space, bool count_padding, View<const T> x, View<T> y) {
  for_each_pixel(y, [&](int n, int c, int p, int q, std::int64_t i) {
    const int volume = c / space.depth.count, d = c - volume * space.depth.count;
    const T* from = x.at(n, volume * space.depth.extent);
    T sum = 0;
    for_each_cell(space, d, p, q, [&](int slice, int row, int column) {
      sum += from[(std::int64_t{slice} * x.h + row) * x.w + column];
    });
    const std::int64_t cells = counted(space, count_padding, d, p, q);
    y.at(n, 0)[i] = cells == 0 ? T(0) : sum / static_cast<T>(cells);
  });
}

template <class T>
__global__ void space_mean_backward_kernel(Space space, bool count_padding, View<const T> dy, View<T> dx, bool adds) {
  for_each_pixel(dx, [&](int n, int c, int h, int w, std::int64_t i) {
    const int volume = c / space.depth.extent, slice = c - volume * space.depth.extent;
    const T* gradients = dy.at(n, 0) + std::int64_t{volume} * space.depth.count * dy.plane();
    T sum = 0;
    for_each_window(space, slice, h, w, [&](int d, int p, int q) {
      sum +=
          gradients[(std::int64_t{d} * dy.h + p) * dy.w + q] / static_cast<T>(counted(space, count_padding, d, p, q));
    });
    put(dx.at(n, 0)[i], sum, adds);
  });
}

}  // namespace

template <class T>
void space_max_forward(Stream stream, const Space& space, bool places, View<const T> x, View<T> y,
                       std::int32_t* winners) {
  launch(LAMINA_KERNEL(space_max_forward_kernel<T>), grid_of_elements(y), elements_per_block, 0, stream, space, places,
         x, y, winners);
}

template <class T>
void space_max_backward(Stream stream, const Space& space, View<const T> dy, const std::int32_t* winners, View<T> dx,
                        bool adds) {
  launch(LAMINA_KERNEL(space_max_backward_kernel<T>), grid_of_elements(dx), elements_per_block, 0, stream, space, dy,
         winners, dx, adds);
}

template <class T>
void space_mean_forward(Stream stream, const Space& space, bool count_padding, View<const T> x, View<T> y) {
  launch(LAMINA_KERNEL(space_mean_forward_kernel<T>), grid_of_elements(y), elements_per_block, 0, stream, space,
         count_padding, x, y);
}

template <class T>
void space_mean_backward(Stream stream, const Space& space, bool count_padding, View<const T> dy, View<T> dx,
                         bool adds) {
  launch(LAMINA_KERNEL(space_mean_backward_kernel<T>), grid_of_elements(dx), elements_per_block, 0, stream, space,
         count_padding, dy, dx, adds);
}

#define LAMINA_SPACE_POOL(T)                                                                                 \
  template void space_max_forward(Stream, const Space&, bool, View<const T>, View<T>, std::int32_t*);        \
  template void space_max_backward(Stream, const Space&, View<const T>, const std::int32_t*, View<T>, bool); \
  template void space_mean_forward(Stream, const Space&, bool, View<const T>, View<T>);                      \
  template void space_mean_backward(Stream, const Space&, bool, View<const T>, View<T>, bool);
LAMINA_SPACE_POOL(float)
LAMINA_SPACE_POOL(double)
#undef LAMINA_SPACE_POOL

}  // namespace lamina::LAMINA_CUDA_SPACE
