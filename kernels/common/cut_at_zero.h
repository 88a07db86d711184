#pragma once
// What ReLU does to one number, wherever it stands.

#include "launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// max(value, 0): +0 for -0, and a NaN, which is not <= 0, stays.
template <class T>
__device__ T cut_at_zero(T value) {
  return value <= T(0) ? T(0) : value;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
