#pragma once
// Average pooling.

#include "kernels/common/stream.h"
#include "windows.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The sum of a window is divided by the number of its cells inside the image or, with `count_padding`, inside the
/// padded image.
template <class T>
void average_pool_forward(Stream, const Windows&, bool count_padding, View<const T> x, View<T> y);

/// dx, or dx += with `adds`.
template <class T>
void average_pool_backward(Stream, const Windows&, bool count_padding, View<const T> dy, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
