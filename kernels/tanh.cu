// Tanh: y = tanh(x); dx = dy (1 - y y). The kernels are those of common/smooth.h.

#include "tanh.h"

#include <cmath>

#include "common/smooth.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

struct Tanh {
  template <class T>
  static __device__ T value(T x) {
    return std::tanh(x);
  }
  template <class T>
  static __device__ T slope(T y) {
    return T(1) - y * y;
  }
};

}  // namespace

template <class T>
void tanh_forward(Stream stream, View<const T> x, View<T> y) {
  smooth_forward<Tanh>(stream, x, y);
}

template <class T>
void tanh_backward(Stream stream, View<const T> y, View<const T> dy, View<T> dx, bool adds) {
  smooth_backward<Tanh>(stream, y, dy, dx, adds);
}

template void tanh_forward(Stream, View<const float>, View<float>);
template void tanh_forward(Stream, View<const double>, View<double>);
template void tanh_backward(Stream, View<const float>, View<const float>, View<float>, bool);
template void tanh_backward(Stream, View<const double>, View<const double>, View<double>, bool);

}  // namespace lamina::LAMINA_CUDA_SPACE
