// Softmax: y[c] = exp(x[c] - max) / sum over c' of exp(x[c'] - max), over the channels of a pixel.
// dx[c] = y[c] (dy[c] - sum over c' of y[c'] dy[c']).
//
// Vectors (one pixel per image): a block of 256 threads computes one image, thread t the channels t, t + 256, ...
// Maps: a thread computes one pixel and walks its channels, pixels side by side; images are along the grid's y.
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

template <class T>
__global__ void softmax_forward_vectors_kernel(View<const T> x, View<T> y) {
  const int first = static_cast<int>(threadIdx.x);
  for (int n = static_cast<int>(blockIdx.x); n < x.n; n += static_cast<int>(gridDim.x)) {
    const T* from = x.at(n, 0);
    T* to = y.at(n, 0);
    T largest = from[first < x.c ? first : 0];
    for (int c = first; c < x.c; c += vector_threads) largest = Larger()(largest, from[c]);
    largest = reduce_block<vector_threads>(largest, Larger());
    T sum = 0;
    for (int c = first; c < x.c; c += vector_threads) sum += std::exp(from[c] - largest);
    sum = reduce_block<vector_threads>(sum, Plus());
    for (int c = first; c < x.c; c += vector_threads) to[c] = std::exp(from[c] - largest) / sum;
  }
}

template <class T>
__global__ void softmax_backward_vectors_kernel(View<const T> y, View<const T> dy, View<T> dx, bool adds) {
  const int first = static_cast<int>(threadIdx.x);
  for (int n = static_cast<int>(blockIdx.x); n < y.n; n += static_cast<int>(gridDim.x)) {
    const T *probability = y.at(n, 0), *gradient = dy.at(n, 0);
    T* to = dx.at(n, 0);
    T dot = 0;
    for (int c = first; c < y.c; c += vector_threads) dot += probability[c] * gradient[c];
    dot = reduce_block<vector_threads>(dot, Plus());
    for (int c = first; c < y.c; c += vector_threads) put(to[c], probability[c] * (gradient[c] - dot), adds);
  }
}

/// Calls body(image, pixel) for every pixel of this thread.
template <class T, class Body>
__device__ void for_each_place(const View<T>& view, Body body) {
  View<T> pixels = view;
  pixels.c = 1;
  for_each_element(pixels, body);
}

template <class T>
__global__ void softmax_forward_maps_kernel(View<const T> x, View<T> y) {
  for_each_place(y, [&](int n, std::int64_t place) {
    const T* from = x.at(n, 0) + place;
    T* to = y.at(n, 0) + place;
    const std::int64_t plane = x.plane();
    T largest = from[0];
    for (int c = 1; c < x.c; ++c) largest = Larger()(largest, from[c * plane]);
    T sum = 0;
    for (int c = 0; c < x.c; ++c) sum += std::exp(from[c * plane] - largest);
    for (int c = 0; c < x.c; ++c) to[c * plane] = std::exp(from[c * plane] - largest) / sum;
  });
}

template <class T>
__global__ void softmax_backward_maps_kernel(View<const T> y, View<const T> dy, View<T> dx, bool adds) {
  for_each_place(dx, [&](int n, std::int64_t place) {
    const T *probability = y.at(n, 0) + place, *gradient = dy.at(n, 0) + place;
    T* to = dx.at(n, 0) + place;
    const std::int64_t plane = y.plane();
    T dot = 0;
    for (int c = 0; c < y.c; ++c) dot += probability[c * plane] * gradient[c * plane];
    for (int c = 0; c < y.c; ++c) put(to[c * plane], probability[c * plane] * (gradient[c * plane] - dot), adds);
  });
}

template <class T>
dim3 grid_of_pixels(View<T> view) {
  view.c = 1;
  return grid_of_elements(view);
}

}  // namespace

template <class T>
void softmax_forward(Stream stream, View<const T> x, View<T> y) {
  if (y.plane() == 1) {
    launch(LAMINA_KERNEL(softmax_forward_vectors_kernel<T>), blocks_for(y.n, 1), vector_threads, 0, stream, x, y);
  } else {
    launch(LAMINA_KERNEL(softmax_forward_maps_kernel<T>), grid_of_pixels(y), elements_per_block, 0, stream, x, y);
  }
}

template <class T>
void softmax_backward(Stream stream, View<const T> y, View<const T> dy, View<T> dx, bool adds) {
  if (dx.plane() == 1) {
    launch(LAMINA_KERNEL(softmax_backward_vectors_kernel<T>), blocks_for(dx.n, 1), vector_threads, 0, stream, y, dy, dx,
           adds);
  } else {
    launch(LAMINA_KERNEL(softmax_backward_maps_kernel<T>), grid_of_pixels(dx), elements_per_block, 0, stream, y, dy, dx,
           adds);
  }
}

#define LAMINA_INSTANTIATE(T)                                    \
  template void softmax_forward(Stream, View<const T>, View<T>); \
  template void softmax_backward(Stream, View<const T>, View<const T>, View<T>, bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
