// Sigmoid: y = 1 / (1 + exp(-x)); dx = dy y (1 - y). The kernels are those of common/smooth.h.

#include "sigmoid.h"

#include <cmath>

#include "common/smooth.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

struct Sigmoid {
  template <class T>
  static __device__ T value(T x) {
    return T(1) / (T(1) + std::exp(-x));
  }
  template <class T>
  static __device__ T slope(T y) {
    return y * (T(1) - y);
  }
};

}  // namespace

template <class T>
void sigmoid_forward(Stream stream, View<const T> x, View<T> y) {
  smooth_forward<Sigmoid>(stream, x, y);
}

template <class T>
void sigmoid_backward(Stream stream, View<const T> y, View<const T> dy, View<T> dx, bool adds) {
  smooth_backward<Sigmoid>(stream, y, dy, dx, adds);
}

template void sigmoid_forward(Stream, View<const float>, View<float>);
template void sigmoid_forward(Stream, View<const double>, View<double>);
template void sigmoid_backward(Stream, View<const float>, View<const float>, View<float>, bool);
template void sigmoid_backward(Stream, View<const double>, View<const double>, View<double>, bool);

}  // namespace lamina::LAMINA_CUDA_SPACE
