// Softmax: y[c] = exp(x[c] - max) / sum over c' of exp(x[c'] - max), or its logarithm, over the cells c along an axis.
// dx[c] = y[c] (dy[c] - sum over c' of y[c'] dy[c']), or for the logarithm dy[c] - exp(y[c]) sum over c' of dy[c'].
//
// Vectors (adjacent cells): a block of 256 threads computes one vector, thread t the cells t, t + 256, ...
// Maps: a thread computes one place and walks its cells, places side by side; images are along the grid's y.
// Per element: three reads, two of them from a cache, and one write; backward two reads of y and dy each.

#include "softmax.h"

#include <cmath>
#include <cstdint>

#include "kernels/common/elements.h"
#include "kernels/common/packs.h"
#include "kernels/common/reduce.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int vector_threads = 256;

/// The first element of vector i: number i % outer of image i / outer.
template <class T>
__device__ T* vector_of(const View<T>& view, const CellsAlong& of, std::int64_t i) {
  return view.at(static_cast<int>(i / of.outer), 0) + i % of.outer * of.cells;
}

template <class Number>
__device__ Number share_of(Number difference, Number sum, bool log) {
  return log ? difference - std::log(sum) : std::exp(difference) / sum;
}

template <class Number>
__device__ Number gradient_of(Number y, Number dy, Number sum, bool log) {
  return log ? dy - std::exp(y) * sum : y * (dy - sum);
}

template <class T>
__global__ void softmax_forward_vectors_kernel(View<const T> x, CellsAlong of, bool log, View<T> y) {
  const int first = static_cast<int>(threadIdx.x);
  for (std::int64_t i = blockIdx.x; i < std::int64_t{x.n} * of.outer; i += gridDim.x) {
    const T* from = vector_of(x, of, i);
    T* to = vector_of(y, of, i);
    T largest = from[first < of.cells ? first : 0];
    for (int c = first; c < of.cells; c += vector_threads) largest = Larger()(largest, from[c]);
    largest = reduce_block<vector_threads>(largest, Larger());
    T sum = 0;
    for (int c = first; c < of.cells; c += vector_threads) sum += std::exp(from[c] - largest);
    sum = reduce_block<vector_threads>(sum, Plus());
    for (int c = first; c < of.cells; c += vector_threads) to[c] = share_of(from[c] - largest, sum, log);
  }
}

template <class T>
__global__ void softmax_backward_vectors_kernel(View<const T> y, View<const T> dy, CellsAlong of, bool log, View<T> dx,
                                                bool adds) {
  const int first = static_cast<int>(threadIdx.x);
  for (std::int64_t i = blockIdx.x; i < std::int64_t{y.n} * of.outer; i += gridDim.x) {
    const T *probability = vector_of(y, of, i), *gradient = vector_of(dy, of, i);
    T* to = vector_of(dx, of, i);
    T sum = 0;
    for (int c = first; c < of.cells; c += vector_threads) sum += log ? gradient[c] : probability[c] * gradient[c];
    sum = reduce_block<vector_threads>(sum, Plus());
    for (int c = first; c < of.cells; c += vector_threads)
      put(to[c], gradient_of(probability[c], gradient[c], sum, log), adds);
  }
}

/// A view with one element for each place whose cells a thread walks.
template <class T>
LAMINA_HOST_DEVICE View<T> places_of(View<T> view, const CellsAlong& of) {
  view.c = 1;
  view.h = of.outer;
  view.w = of.inner;
  return view;
}

/// Calls body(image, element of the place's first cell) for every place of this thread.
template <class T, class Body>
__device__ void for_each_place(const View<T>& view, const CellsAlong& of, Body body) {
  for_each_element(places_of(view, of), [&](int n, std::int64_t place) {
    const unsigned outer = static_cast<unsigned>(place) / static_cast<unsigned>(of.inner);
    body(n, place + std::int64_t{outer} * (of.cells - 1) * of.inner);
  });
}

template <class T>
__global__ void softmax_forward_maps_kernel(View<const T> x, CellsAlong of, bool log, View<T> y) {
  for_each_place(y, of, [&](int n, std::int64_t place) {
    const T* from = x.at(n, 0) + place;
    T* to = y.at(n, 0) + place;
    const std::int64_t apart = of.inner;
    T largest = from[0];
    for (int c = 1; c < of.cells; ++c) largest = Larger()(largest, from[c * apart]);
    T sum = 0;
    for (int c = 0; c < of.cells; ++c) sum += std::exp(from[c * apart] - largest);
    for (int c = 0; c < of.cells; ++c) to[c * apart] = share_of(from[c * apart] - largest, sum, log);
  });
}

template <class T>
__global__ void softmax_backward_maps_kernel(View<const T> y, View<const T> dy, CellsAlong of, bool log, View<T> dx,
                                             bool adds) {
  for_each_place(dx, of, [&](int n, std::int64_t place) {
    const T *probability = y.at(n, 0) + place, *gradient = dy.at(n, 0) + place;
    T* to = dx.at(n, 0) + place;
    const std::int64_t apart = of.inner;
    T sum = 0;
    for (int c = 0; c < of.cells; ++c) sum += log ? gradient[c * apart] : probability[c * apart] * gradient[c * apart];
    for (int c = 0; c < of.cells; ++c)
      put(to[c * apart], gradient_of(probability[c * apart], gradient[c * apart], sum, log), adds);
  });
}

}  // namespace

template <class T>
void softmax_forward(Stream stream, View<const T> x, const CellsAlong& of, bool log, View<T> y) {
  if (of.inner == 1) {
    launch(LAMINA_KERNEL(softmax_forward_vectors_kernel<T>), blocks_for(std::int64_t{y.n} * of.outer, 1),
           vector_threads, 0, stream, x, of, log, y);
  } else {
    launch(LAMINA_KERNEL(softmax_forward_maps_kernel<T>), grid_of_elements(places_of(y, of)), elements_per_block, 0,
           stream, x, of, log, y);
  }
}

template <class T>
void softmax_backward(Stream stream, View<const T> y, View<const T> dy, const CellsAlong& of, bool log, View<T> dx,
                      bool adds) {
  if (of.inner == 1) {
    launch(LAMINA_KERNEL(softmax_backward_vectors_kernel<T>), blocks_for(std::int64_t{dx.n} * of.outer, 1),
           vector_threads, 0, stream, y, dy, of, log, dx, adds);
  } else {
    launch(LAMINA_KERNEL(softmax_backward_maps_kernel<T>), grid_of_elements(places_of(dx, of)), elements_per_block, 0,
           stream, y, dy, of, log, dx, adds);
  }
}

#define LAMINA_INSTANTIATE(T)                                                             \
  template void softmax_forward(Stream, View<const T>, const CellsAlong&, bool, View<T>); \
  template void softmax_backward(Stream, View<const T>, View<const T>, const CellsAlong&, bool, View<T>, bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
