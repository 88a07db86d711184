#pragma once
// Batch norm folded into the filters and the bias of the convolution before it, for inference.

#include <cmath>
#include <cstdint>

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// A batch norm by its running statistics, with one number per filter of the convolution. Null: there is no batch norm.
template <class T>
struct FoldedNorm {
  const T *scale = nullptr, *shift = nullptr, *mean = nullptr, *variance = nullptr;
  double epsilon = 0;

  /// The factor of a filter.
  LAMINA_HOST_DEVICE double factor(int filter) const {
    return static_cast<double>(scale[filter]) / std::sqrt(static_cast<double>(variance[filter]) + epsilon);
  }
};

/// A batch norm, and the convolution into which it is folded: filters of `weights` contiguous weights each, and a bias.
/// A null bias is zero.
template <class T>
struct ConvFold {
  FoldedNorm<T> norm{};
  const T *w = nullptr, *bias = nullptr;
  int filters = 0;
  std::int64_t weights = 0;
};

/// w_to[k] = w[k] f and bias_to[k] = (bias[k] - mean[k]) f + shift[k], with f = scale[k] / sqrt(variance[k] + epsilon),
/// computed in double. A null w_to is skipped.
template <class T>
void conv_fold(Stream, const ConvFold<T>&, T* w_to, T* bias_to);

}  // namespace lamina::LAMINA_CUDA_SPACE
