#pragma once
// A pooling op as its kernels see it.

#include "kernels/pool/windows.h"
#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {

template <class Pooling>
Windows windows_of(const Pooling& op, const Spec& spec) {
  const Shape &x = spec.x[0].shape, &y = spec.y.shape;
  return {.H = x.h,
          .W = x.w,
          .P = y.h,
          .Q = y.w,
          .R = op.window.h,
          .S = op.window.w,
          .stride_h = op.stride.h,
          .stride_w = op.stride.w,
          .pad_h = op.pad.h,
          .pad_w = op.pad.w};
}

}  // namespace lamina::LAMINA_CUDA_SPACE
