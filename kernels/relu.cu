// ReLU: y = max(x, 0); dx = dy where y > 0, else 0. One thread for one element.

#include "relu.h"

#include "elements.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
__global__ void relu_forward_kernel(View<const T> x, View<T> y) {
  for_each_element(y, [&](int n, std::int64_t i) {
    const T value = x.at(n, 0)[i];
    y.at(n, 0)[i] = value <= T(0) ? T(0) : value;  // a NaN is not <= 0, and stays
  });
}

template <class T>
__global__ void relu_backward_kernel(View<const T> y, View<const T> dy, View<T> dx, bool adds) {
  for_each_element(
      dx, [&](int n, std::int64_t i) { put(dx.at(n, 0)[i], y.at(n, 0)[i] > T(0) ? dy.at(n, 0)[i] : T(0), adds); });
}

}  // namespace

template <class T>
void relu_forward(Stream stream, View<const T> x, View<T> y) {
  launch(LAMINA_KERNEL(relu_forward_kernel<T>), grid_of_elements(y), elements_per_block, 0, stream, x, y);
}

template <class T>
void relu_backward(Stream stream, View<const T> y, View<const T> dy, View<T> dx, bool adds) {
  launch(LAMINA_KERNEL(relu_backward_kernel<T>), grid_of_elements(dx), elements_per_block, 0, stream, y, dy, dx, adds);
}

template void relu_forward(Stream, View<const float>, View<float>);
template void relu_forward(Stream, View<const double>, View<double>);
template void relu_backward(Stream, View<const float>, View<const float>, View<float>, bool);
template void relu_backward(Stream, View<const double>, View<const double>, View<double>, bool);

}  // namespace lamina::LAMINA_CUDA_SPACE
