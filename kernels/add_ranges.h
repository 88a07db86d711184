#pragma once
// The sums of a weight gradient's ranges, added in order.

#include "stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// to = range 0 + range 1 + ..., or to += with `adds`; ranges of `count` elements follow each other at `partial`.
template <class T>
void add_ranges(Stream, const T* partial, int ranges, std::int64_t count, T* to, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
