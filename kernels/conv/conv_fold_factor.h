#pragma once
// The factor that a folded batch norm applies to a filter.

#include <cmath>

#include "conv_fold.h"
#include "kernels/common/launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

template <class T>
__device__ double fold_factor(const FoldedNorm<T>& norm, int filter) {
  return static_cast<double>(norm.scale[filter]) / std::sqrt(static_cast<double>(norm.variance[filter]) + norm.epsilon);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
