#pragma once
// y = max(x, 0), and dx = dy where y > 0, else 0.

#include "common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// y may alias x. A NaN stays a NaN.
template <class T>
void relu_forward(Stream, View<const T> x, View<T> y);

/// dx, or dx += with `adds`; dx may alias dy.
template <class T>
void relu_backward(Stream, View<const T> y, View<const T> dy, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
