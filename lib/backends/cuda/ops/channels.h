#pragma once
// Some channels of a tensor, as a tensor.

#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Channels [first, first + count).
inline Tensor channels_of(const Tensor& tensor, int first, int count) {
  Tensor part = tensor;
  part.data =
      static_cast<char*>(tensor.data) + static_cast<std::size_t>(first * tensor.shape.plane()) * size_of(tensor.dtype);
  part.shape.c = count;
  return part;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
