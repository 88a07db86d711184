// Resize: y[p,q] = the sum over one or two rows and columns of x, each times its weight; dx[h,w] = the sum of the dy
// that read the cell, times the same weights, rows then columns.
//
// A thread has one pixel of several channels of an image, so that its position is computed once for all of them.
// Positions are in double, so they equal those of the other backends. Pixels are along the grid's x, channels along y,
// images along z. Per element written: one or four reads of x, which caches serve; backward each dy is read once for
// each cell that its y read.

#include "resize.h"

#include <algorithm>

#include "kernels/common/elements.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr unsigned channels_at_once = 4;

/// The cell below a position, and the weight of the cell above.
template <class C>
struct Sample {
  int cell;
  C above;
};

template <class C>
__device__ Sample<C> sample(const Positions& axis, int i) {
  const double position =
      std::fmin(std::fmax(std::fma(static_cast<double>(i), axis.step, axis.offset), 0.0), axis.extent - 1.0);
  const int cell = static_cast<int>(position);
  return {cell, axis.linear ? static_cast<C>(position - cell) : C(0)};
}

/// The first of `count` elements whose cell is not below `cell`.
__device__ inline int first_at(const Positions& axis, int cell, int count) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (sample<float>(axis, middle).cell < cell)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// The weight of a cell in a sample. The cell is the one below the position, or the one above.
template <class C>
__device__ C weight_of(const Sample<C>& its, int cell) {
  return its.cell == cell ? C(1) - its.above : its.above;
}

/// Calls body(row, column, pixel) for every pixel of this thread.
template <class T, class Body>
__device__ void for_each_place(const View<T>& view, Body body) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < view.plane(); i += stride) {
    const auto pixel = static_cast<unsigned>(i), row = pixel / static_cast<unsigned>(view.w);
    body(static_cast<int>(row), static_cast<int>(pixel - row * static_cast<unsigned>(view.w)), i);
  }
}

template <class T>
__global__ void resize_forward_kernel(View<const T> x, Positions rows, Positions columns, View<T> y) {
  using C = Computed<T>;
  for_each_place(y, [&](int p, int q, std::int64_t pixel) {
    const Sample<C> row = sample<C>(rows, p), column = sample<C>(columns, q);
    const std::int64_t place = std::int64_t{row.cell} * x.w + column.cell;
    const int right = column.cell + 1 < x.w ? 1 : 0, below = row.cell + 1 < x.h ? x.w : 0;
    for (int n = static_cast<int>(blockIdx.z); n < y.n; n += static_cast<int>(gridDim.z))
      for (unsigned c = blockIdx.y; c < static_cast<unsigned>(y.c); c += gridDim.y) {
        const T* const from = x.at(n, static_cast<int>(c)) + place;
        C value = load(from[0]);
        if (rows.linear) {
          const C left = C(1) - column.above;
          value = (C(1) - row.above) * (left * value + column.above * load(from[right])) +
                  row.above * (left * load(from[below]) + column.above * load(from[below + right]));
        }
        store(y.at(n, static_cast<int>(c))[pixel], value);
      }
  });
}

template <class T>
__global__ void resize_backward_kernel(View<const T> dy, Positions rows, Positions columns, View<T> dx, bool adds) {
  using C = Computed<T>;
  for_each_place(dx, [&](int h, int w, std::int64_t pixel) {
    const int reach = rows.linear ? 1 : 0;
    const int p_begin = first_at(rows, h - reach, dy.h), p_end = first_at(rows, h + 1, dy.h);
    const int q_begin = first_at(columns, w - reach, dy.w), q_end = first_at(columns, w + 1, dy.w);
    const auto channels = static_cast<unsigned>(dx.c);
    for (int n = static_cast<int>(blockIdx.z); n < dx.n; n += static_cast<int>(gridDim.z))
      for (unsigned first = blockIdx.y; first < channels; first += channels_at_once * gridDim.y) {
        C sums[channels_at_once] = {};
        for (int p = p_begin; p < p_end; ++p) {
          const C down = weight_of(sample<C>(rows, p), h);
          for (int q = q_begin; q < q_end; ++q) {
            const C weight = down * weight_of(sample<C>(columns, q), w);
            const T* const from = dy.at(n, static_cast<int>(first)) + std::int64_t{p} * dy.w + q;
            for (unsigned k = 0; k < channels_at_once; ++k)
              if (first + k * gridDim.y < channels) sums[k] += weight * load(from[k * gridDim.y * dy.plane()]);
          }
        }
        for (unsigned k = 0; k < channels_at_once; ++k)
          if (const unsigned c = first + k * gridDim.y; c < channels)
            put(dx.at(n, static_cast<int>(c))[pixel], sums[k], adds);
      }
  });
}

template <class T>
dim3 grid_of_places(const View<T>& view) {
  const auto blocks = [](std::int64_t count) { return static_cast<unsigned>(std::min<std::int64_t>(count, 65535)); };
  return dim3(blocks(divide_up(view.plane(), elements_per_block)),
              blocks(divide_up<std::int64_t>(view.c, channels_at_once)), blocks(view.n));
}

}  // namespace

template <class T>
void resize_forward(Stream stream, View<const T> x, Positions rows, Positions columns, View<T> y) {
  launch(LAMINA_KERNEL(resize_forward_kernel<T>), grid_of_places(y), elements_per_block, 0, stream, x, rows, columns,
         y);
}

template <class T>
void resize_backward(Stream stream, View<const T> dy, Positions rows, Positions columns, View<T> dx, bool adds) {
  launch(LAMINA_KERNEL(resize_backward_kernel<T>), grid_of_places(dx), elements_per_block, 0, stream, dy, rows, columns,
         dx, adds);
}

#define LAMINA_INSTANTIATE(T)                                                         \
  template void resize_forward(Stream, View<const T>, Positions, Positions, View<T>); \
  template void resize_backward(Stream, View<const T>, Positions, Positions, View<T>, bool);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
