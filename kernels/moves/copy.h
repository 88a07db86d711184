#pragma once
// to = from, or to += from.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Copies between views of one shape, each with its own pitch. The views are the same memory or do not overlap. They
/// have one type, or float and a half.
template <class From, class To>
void copy(Stream, View<const From> from, View<To> to, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
