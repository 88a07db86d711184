#pragma once
// y = tanh(x), and dx = dy (1 - y y).

#include "common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// y may alias x. A NaN stays a NaN.
template <class T>
void tanh_forward(Stream, View<const T> x, View<T> y);

/// dx, or dx += with `adds`; dx may alias dy.
template <class T>
void tanh_backward(Stream, View<const T> y, View<const T> dy, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
