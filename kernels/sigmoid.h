#pragma once
// y = 1 / (1 + exp(-x)), and dx = dy y (1 - y).

#include "common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// y may alias x. A NaN stays a NaN.
template <class T>
void sigmoid_forward(Stream, View<const T> x, View<T> y);

/// dx, or dx += with `adds`; dx may alias dy.
template <class T>
void sigmoid_backward(Stream, View<const T> y, View<const T> dy, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
