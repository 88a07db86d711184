#pragma once
// Functions of one element: y = value(x), and dx = gradient(v, dy), where v is x or y.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// A function with its numbers: those of lamina::Function (lamina/op.h), in its order and from the same of x and y, and
/// ReLU, from y.
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
    functions
  };
  Name name;
  double a = 0, b = 0;
};

/// y may alias x. A NaN stays a NaN. There is no hard_sigmoid of halves.
template <class T>
void pointwise_forward(Stream, const PointwiseFunction&, View<const T> x, View<T> y);

/// dx, or dx += with `adds`; dx may alias dy.
template <class T>
void pointwise_backward(Stream, const PointwiseFunction&, View<const T> v, View<const T> dy, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
