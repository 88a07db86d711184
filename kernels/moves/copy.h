#pragma once
// to = from, or to += from.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Copies between views of one shape, each with its own pitch. They are the same memory or do not overlap.
template <class T>
void copy(Stream, View<const T> from, View<T> to, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
