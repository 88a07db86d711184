#pragma once
// The windows of a pooling op on a plane, and padded rows split into phases so that strided windows become unit-stride
// vectors.

#include <algorithm>
#include <cstdint>

#include "lamina/op.h"
#include "lamina/shape.h"

namespace lamina::eigen {

/// Extents as the page on notation names them: input H x W, output P x Q, window R x S.
struct Windows {
  std::int64_t H, W, P, Q, R, S;
  std::int64_t stride_h, stride_w, pad_h, pad_w;

  template <class Pooling>
  Windows(const Pooling& op, const Shape& x, const Shape& y)
      : H(x.h),
        W(x.w),
        P(y.h),
        Q(y.w),
        R(op.window.h),
        S(op.window.w),
        stride_h(y.h > 1 ? op.stride.h : 1),  // one window: any stride means the same, and 1 needs the least room
        stride_w(y.w > 1 ? op.stride.w : 1),
        pad_h(op.pad.h),
        pad_w(op.pad.w) {}

  std::int64_t first_row(std::int64_t p) const { return p * stride_h - pad_h; }  ///< negative in the padding
  std::int64_t first_column(std::int64_t q) const { return q * stride_w - pad_w; }

  /// A padded row holds every cell that any window touches; column w of the plane is cell w + pad_w. Columns beyond the
  /// last window are left out.
  std::int64_t row_cells() const { return (Q - 1) * stride_w + S; }
  std::int64_t columns_used() const { return std::min(W, row_cells() - pad_w); }

  /// Phase j of a row holds cells j, j + stride, j + 2 stride, ...: cell s of window q is element q + s / stride of
  /// phase s % stride.
  std::int64_t phase_cells() const { return Q + (S - 1) / stride_w; }
};

}  // namespace lamina::eigen
