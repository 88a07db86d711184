#pragma once
// Geometry of a pooling op's windows, seen from a window and from a pixel. Max and average pooling share it.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// A pooling op on one tensor: H x W pixels become P x Q windows of R x S cells.
struct Windows {
  int H, W, P, Q, R, S;
  int stride_h, stride_w, pad_h, pad_w;
};

/// The integers first to last - 1.
struct Span {
  int first, last;
};

/// One axis of Windows: `extent` pixels, `count` windows. Template arguments other than 0 are known to the compiler, so
/// divisions become shifts and loops unroll.
template <int fixed_window, int fixed_stride>
struct Axis {
  int extent, count, window_, stride_, pad;

  LAMINA_HOST_DEVICE int window() const { return fixed_window > 0 ? fixed_window : window_; }
  LAMINA_HOST_DEVICE int stride() const { return fixed_stride > 0 ? fixed_stride : stride_; }
  /// First pixel of a window; negative in the padding.
  LAMINA_HOST_DEVICE int begin(int index) const { return index * stride() - pad; }
  /// Pixels of a window that are inside the image.
  LAMINA_HOST_DEVICE Span pixels(int index) const {
    const int first = begin(index), last = first + window();
    return {first < 0 ? 0 : first, last < extent ? last : extent};
  }
  /// Windows that contain a pixel.
  LAMINA_HOST_DEVICE Span windows(int pixel) const {
    const int beyond = pixel + pad - window();  // windows that begin here or before do not reach the pixel
    const int last = (pixel + pad) / stride() + 1;
    return {beyond < 0 ? 0 : beyond / stride() + 1, last < count ? last : count};
  }
};

/// Calls function(rows, columns) with the two Axis of a pooling op. With `fixed`, usual sizes are known to the
/// compiler.
template <bool fixed = true, class Function>
void with_axes(const Windows& g, const Function& function) {
  const auto call = [&](auto rows, auto columns) {
    rows = {g.H, g.P, g.R, g.stride_h, g.pad_h};
    columns = {g.W, g.Q, g.S, g.stride_w, g.pad_w};
    function(rows, columns);
  };
  if constexpr (fixed) {
    const auto is = [&](int window, int stride) {
      return g.R == window && g.S == window && g.stride_h == stride && g.stride_w == stride;
    };
    if (is(2, 2)) return call(Axis<2, 2>(), Axis<2, 2>());
    if (is(3, 2)) return call(Axis<3, 2>(), Axis<3, 2>());
    if (is(3, 1)) return call(Axis<3, 1>(), Axis<3, 1>());
  }
  call(Axis<0, 0>(), Axis<0, 0>());
}

}  // namespace lamina::LAMINA_CUDA_SPACE
