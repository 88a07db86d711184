#pragma once
// Local response normalisation across channels.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The window of channel c is c - size / 2 to c - size / 2 + size - 1, clipped to the channels that exist.
struct LrnNumbers {
  int size;
  double alpha, beta, k;
};

/// y must not alias x: a thread reads channels that other threads write.
template <class T>
void lrn_forward(Stream, const LrnNumbers&, View<const T> x, View<T> y);

/// dx, or dx += with `adds`; dx must not alias dy.
template <class T>
void lrn_backward(Stream, const LrnNumbers&, View<const T> x, View<const T> dy, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
