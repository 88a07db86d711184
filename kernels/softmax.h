#pragma once
// Softmax over the cells along one axis: CellsAlong has one repeat.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// With `log` the logarithm of the softmax; y may alias x.
template <class T>
void softmax_forward(Stream, View<const T> x, const CellsAlong&, bool log, View<T> y);

/// dx, or dx += with `adds`; dx may alias dy.
template <class T>
void softmax_backward(Stream, View<const T> y, View<const T> dy, const CellsAlong&, bool log, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
