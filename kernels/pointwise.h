#pragma once
// Functions of one element: y = value(x), and dx = gradient(v, dy), where v is x or y.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The functions by name, with their numbers. For those marked (x) v is x; for the others v is y.
namespace pointwise {
struct Relu {};     ///< max(x, 0)
struct Sigmoid {};  ///< 1 / (1 + exp(-x))
struct Tanh {};
struct Clip {  ///< min(max(x, low), high)
  double low, high;
};
struct HardSigmoid {  ///< min(max(alpha x + beta, 0), 1)
  double alpha, beta;
};
struct HardSwish {};  ///< (x) x min(max(x / 6 + 1/2, 0), 1)
struct Silu {};       ///< (x) x / (1 + exp(-x))
}  // namespace pointwise

/// y may alias x. A NaN stays a NaN.
template <class F, class T>
void pointwise_forward(Stream, const F&, View<const T> x, View<T> y);

/// dx, or dx += with `adds`; dx may alias dy.
template <class F, class T>
void pointwise_backward(Stream, const F&, View<const T> v, View<const T> dy, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
