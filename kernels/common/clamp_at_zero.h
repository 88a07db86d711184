#pragma once
// ReLU of one number.

#include "launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// max(value, 0). It is +0 for -0. A NaN stays a NaN, because it is not <= 0.
template <class T>
__device__ T clamp_at_zero(T value) {
  return value <= T(0) ? T(0) : value;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
