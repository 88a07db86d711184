#pragma once
// to = value.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

template <class T>
void fill(Stream, View<T> to, Computed<T> value);

}  // namespace lamina::LAMINA_CUDA_SPACE
