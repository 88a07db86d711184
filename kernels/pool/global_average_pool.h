#pragma once
// The mean of each plane.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// y has the images and channels of x, and one pixel.
template <class T>
void global_average_pool_forward(Stream, View<const T> x, View<T> y);

/// dx, or dx += with `adds`: dy / (H W) on every pixel of the plane.
template <class T>
void global_average_pool_backward(Stream, View<const T> dy, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
