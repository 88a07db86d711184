#pragma once
// to = from, or to += from.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Copies between views of one shape, each with its own pitch. They are the same memory or do not overlap. Their types
/// are one, or float and a half.
template <class From, class To>
void copy(Stream, View<const From> from, View<To> to, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
