#pragma once
// Functions of one element: y = value(x), and dx = gradient(v, dy), where v is x or y.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// A function with its numbers. The names are those of lamina::Function (lamina/ops/elementwise.h), in order, and ReLU.
struct PointwiseFunction {
  enum Name {
    sigmoid,
    tanh,
    clip,
    hard_sigmoid,
    hard_swish,
    silu,
    leaky_relu,
    elu,
    celu,
    gelu,
    gelu_tanh,
    softplus,
    mish,
    exp,
    log,
    sqrt,
    abs,
    pow,
    relu,
    none  ///< y = x, where a function may follow another op
  };
  Name name = none;
  double a = 0, b = 0;
  bool reads_x = false;  ///< whether the gradient is computed from x, otherwise from y
};

/// y may alias x. A NaN stays a NaN.
template <class T>
void pointwise_forward(Stream, const PointwiseFunction&, View<const T> x, View<T> y);

/// dx, or dx += with `adds`; dx may alias dy.
template <class T>
void pointwise_backward(Stream, const PointwiseFunction&, View<const T> v, View<const T> dy, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
