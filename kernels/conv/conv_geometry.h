#pragma once
// The numbers of a convolution, as the kernels of all algorithms take them.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// y[n,k,p,q] = sum over c,r,s of w[k,c,r,s] x[n, g C/groups + c, p stride - pad + r dilation, q stride - pad + s
/// dilation]
struct ConvGeometry {
  int groups = 1;
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation_h = 1, dilation_w = 1;
};

/// The steps after a finished sum of forward, in this order: add the bias unless it is null, add the old contents of y,
/// clamp at 0.
template <class T>
struct ConvEnd {
  const T* bias = nullptr;
  bool adds = false, relu = false;
};

/// dy with a mask: an element counts only where `mask` is above 0. If the mask has no data, every element counts.
template <class T>
struct Masked {
  View<const T> dy, mask;

  /// Element `i` of channel `channel` of image `n`.
  LAMINA_HOST_DEVICE T at(int n, int channel, std::int64_t i) const {
    return mask.data == nullptr || mask.at(n, channel)[i] > T(0) ? dy.at(n, channel)[i] : T(0);
  }
};

/// Workspace sizes of launchers that need no workspace.
struct ConvWithoutWorkspace {
  template <class... Sizes>
  static constexpr std::size_t forward_bytes(const Sizes&...) {
    return 0;
  }
  template <class... Sizes>
  static constexpr std::size_t backward_data_bytes(const Sizes&...) {
    return 0;
  }
  template <class... Sizes>
  static constexpr std::size_t backward_weights_bytes(const Sizes&...) {
    return 0;
  }
};

}  // namespace lamina::LAMINA_CUDA_SPACE
