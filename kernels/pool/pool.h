#pragma once
// Pooling: the maximum or the mean of each window, and their gradients.

#include "windows.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Writes y and, unless `places` is null, the position of each maximum in its window, dense: row * S + column, the
/// first of equal maxima in that order. A NaN counts as the maximum. Place is std::uint8_t for windows of up to 256
/// cells, else std::int32_t.
template <class T, class Place>
void max_pool_forward(Stream, const Windows&, View<const T> x, View<T> y, Place* places);

/// dx, or dx += with `adds`: each pixel gathers the dy of the windows that have their maximum there.
template <class T, class Place>
void max_pool_backward(Stream, const Windows&, View<const T> dy, const Place* places, View<T> dx, bool adds);

/// The sum of a window is divided by the number of its cells inside the image or, with `count_padding`, inside the
/// padded image.
template <class T>
void average_pool_forward(Stream, const Windows&, bool count_padding, View<const T> x, View<T> y);

/// dx, or dx += with `adds`.
template <class T>
void average_pool_backward(Stream, const Windows&, bool count_padding, View<const T> dy, View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
