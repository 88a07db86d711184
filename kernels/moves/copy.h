#pragma once
// to = from, or to += from.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Of one shape; each with its own pitch. Either the same memory or no overlap.
template <class T>
void copy(Stream, View<const T> from, View<T> to, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
