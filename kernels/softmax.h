#pragma once
// Softmax over the channels of every pixel.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// y may alias x.
template <class T>
void softmax_forward(Stream, View<const T> x, View<T> y);

/// dx, or dx += with `adds`; dx may alias dy.
template <class T>
void softmax_backward(Stream, View<const T> y, View<const T> dy, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
