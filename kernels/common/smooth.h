#pragma once
// Element-wise functions whose gradient follows from y: y = F::value(x), dx = dy F::slope(y).
//
// A thread computes one pack of 16 bytes, image by image along the grid's y; dense tensors are one long image.
// Per element: one read and one write; backward two reads and one write.

#include "packs.h"

namespace lamina::LAMINA_CUDA_SPACE {

template <class F, class T, int width>
__global__ void smooth_forward_kernel(Extent extent, Images<const T> x, Images<T> y) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Pack<T, width> pack = load_pack<width>(x.at(n) + i);
    for (T& value : pack.v) value = F::value(value);
    store_pack(y.at(n) + i, pack);
  });
}

template <class F, class T, int width>
__global__ void smooth_backward_kernel(Extent extent, Images<const T> y, Images<const T> dy, Images<T> dx, bool adds) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    const Pack<T, width> value = load_pack<width>(y.at(n) + i);
    Pack<T, width> pack = load_pack<width>(dy.at(n) + i);
    for (int k = 0; k < width; ++k) pack.v[k] *= F::slope(value.v[k]);
    put_pack(dx.at(n) + i, pack, adds);
  });
}

template <class F, class T>
void smooth_forward(Stream stream, View<const T> x, View<T> y) {
  with_packs<T>(
      true,
      [&](auto w, Extent extent) {
        constexpr int width = decltype(w)::value;
        launch(LAMINA_KERNEL(smooth_forward_kernel<F, T, width>), grid_of_packs(extent, width), pack_threads, 0, stream,
               extent, x, y);
      },
      y, x);
}

template <class F, class T>
void smooth_backward(Stream stream, View<const T> y, View<const T> dy, View<T> dx, bool adds) {
  with_packs<T>(
      true,
      [&](auto w, Extent extent) {
        constexpr int width = decltype(w)::value;
        launch(LAMINA_KERNEL(smooth_backward_kernel<F, T, width>), grid_of_packs(extent, width), pack_threads, 0,
               stream, extent, y, dy, dx, adds);
      },
      dx, y, dy);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
