#pragma once
// Means, sums and maxima of each image over some of its axes.

#include <cstdint>

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// y = the sum of the cells / divisor.
template <class T>
void reduce_sum(Stream, View<const T> x, const CellsAlong&, double divisor, View<T> y);

/// y = the first largest cell. `places`, unless null, gets its index among the cells of all repeats (CellsAlong).
template <class T>
void reduce_max(Stream, View<const T> x, const CellsAlong&, View<T> y, std::int32_t* places);

/// dx = dy / divisor in all cells of an element of y. If `places` is not null, only the cell at the place gets it, and
/// the other cells get 0. With `adds`, this is added to dx.
template <class T>
void reduce_backward(Stream, View<const T> dy, const CellsAlong&, double divisor, const std::int32_t* places,
                     View<T> dx, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
