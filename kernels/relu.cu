// ReLU: y = max(x, 0); dx = dy where y > 0, else 0.
//
// A thread computes one pack of 16 bytes, image by image along the grid's y; dense tensors are one long image.
// Per element: one read and one write; backward two reads and one write.

#include "relu.h"

#include "common/cut_at_zero.h"
#include "common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T, int width>
__global__ void relu_forward_kernel(Extent extent, Images<const T> x, Images<T> y) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Pack<T, width> pack = load_pack<width>(x.at(n) + i);
    for (T& value : pack.v) value = cut_at_zero(value);
    store_pack(y.at(n) + i, pack);
  });
}

template <class T, int width>
__global__ void relu_backward_kernel(Extent extent, Images<const T> y, Images<const T> dy, Images<T> dx, bool adds) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    const Pack<T, width> value = load_pack<width>(y.at(n) + i);
    Pack<T, width> pack = load_pack<width>(dy.at(n) + i);
    for (int k = 0; k < width; ++k) pack.v[k] = value.v[k] > T(0) ? pack.v[k] : T(0);
    put_pack(dx.at(n) + i, pack, adds);
  });
}

}  // namespace

template <class T>
void relu_forward(Stream stream, View<const T> x, View<T> y) {
  with_packs<T>(
      true,
      [&](auto w, Extent extent) {
        constexpr int width = decltype(w)::value;
        launch(LAMINA_KERNEL(relu_forward_kernel<T, width>), grid_of_packs(extent, width), pack_threads, 0, stream,
               extent, x, y);
      },
      y, x);
}

template <class T>
void relu_backward(Stream stream, View<const T> y, View<const T> dy, View<T> dx, bool adds) {
  with_packs<T>(
      true,
      [&](auto w, Extent extent) {
        constexpr int width = decltype(w)::value;
        launch(LAMINA_KERNEL(relu_backward_kernel<T, width>), grid_of_packs(extent, width), pack_threads, 0, stream,
               extent, y, dy, dx, adds);
      },
      dx, y, dy);
}

template void relu_forward(Stream, View<const float>, View<float>);
template void relu_forward(Stream, View<const double>, View<double>);
template void relu_backward(Stream, View<const float>, View<const float>, View<float>, bool);
template void relu_backward(Stream, View<const double>, View<const double>, View<double>, bool);

}  // namespace lamina::LAMINA_CUDA_SPACE
