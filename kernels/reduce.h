#pragma once
// Means, sums and maxima of each image over some of its axes.

#include <cstdint>

#include "kernels/common/along.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// y = the sum of the cells / divisor.
template <class T>
void reduce_sum(Stream, View<const T> x, const CellsAlong&, double divisor, View<T> y);

/// y = the first largest cell. Its number, counted over all repeats, becomes `places` unless they are null.
template <class T>
void reduce_max(Stream, View<const T> x, const CellsAlong&, View<T> y, std::int32_t* places);

/// Of each element of y, its cells have dx = dy / divisor, or the one of `places` alone if they are not null. dx, or
/// dx += with `adds`.
template <class T>
void reduce_backward(Stream, View<const T> dy, const CellsAlong&, double divisor, const std::int32_t* places,
                     View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
