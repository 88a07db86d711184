#pragma once
// What a folded batch norm multiplies a filter with.

#include <cmath>

#include "../common/launch.h"
#include "conv_fold.h"

namespace lamina::LAMINA_CUDA_SPACE {

template <class T>
__device__ double fold_factor(const FoldedNorm<T>& norm, int filter) {
  return static_cast<double>(norm.scale[filter]) / std::sqrt(static_cast<double>(norm.variance[filter]) + norm.epsilon);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
