#pragma once
// A convolution with its tensors on the device, full of small whole numbers, for tests that call launchers.

#include <cstdint>
#include <vector>

#include "kernels/conv/conv_geometry.h"
#include "resident.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Numbers from -3 to 3, the same for the same key.
template <class T>
std::vector<T> integers(std::int64_t count, unsigned key) {
  std::vector<T> values(static_cast<std::size_t>(count));
  unsigned state = key * 2654435761U + 1;
  for (T& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<T>(static_cast<int>(state >> 24) % 7 - 3);
  }
  return values;
}

/// A convolution with its tensors. Images of x and y have gaps of `gap` elements.
template <class T>
struct ConvProblem {
  ConvGeometry g;
  View<const T> x_shape;
  int filters;
  bool masked;
  int gap, p, q;
  Resident<T> x, w, bias, dy, mask;
  std::vector<T> dx_old, dw_old;

  ConvProblem(const ConvGeometry& geometry, int n, int c, int h, int wide, int k, bool with_mask = false, int apart = 3)
      : g(geometry),
        x_shape{nullptr, n, c, h, wide, std::int64_t{c} * h * wide + apart},
        filters(k),
        masked(with_mask),
        gap(apart),
        p((h + 2 * g.pad_h - g.dilation_h * (g.kernel_h - 1) - 1) / g.stride_h + 1),
        q((wide + 2 * g.pad_w - g.dilation_w * (g.kernel_w - 1) - 1) / g.stride_w + 1),
        x(integers<T>(n * x_shape.pitch, 1)),
        w(integers<T>(std::int64_t{k} * (c / g.groups) * g.kernel_h * g.kernel_w, 2)),
        bias(integers<T>(k, 3)),
        dy(integers<T>(n * y_pitch(), 4)),
        mask(integers<T>(n * y_pitch(), 5)),
        dx_old(integers<T>(n * x_shape.pitch, 6)),
        dw_old(integers<T>(static_cast<std::int64_t>(w.values.size()), 7)) {}
  std::int64_t y_pitch() const { return std::int64_t{filters} * p * q + gap; }
  View<const T> x_view() const { return {x.data(), x_shape.n, x_shape.c, x_shape.h, x_shape.w, x_shape.pitch}; }
  View<T> dx_view(const Resident<T>& dx) const {
    return {dx.data(), x_shape.n, x_shape.c, x_shape.h, x_shape.w, x_shape.pitch};
  }
  View<T> y_view(const Resident<T>& y) const { return {y.data(), x_shape.n, filters, p, q, y_pitch()}; }
  Masked<T> gradient() const {
    const View<const T> view{dy.data(), x_shape.n, filters, p, q, y_pitch()};
    Masked<T> result{view, {}};
    if (masked) result.mask = {mask.data(), x_shape.n, filters, p, q, y_pitch()};
    return result;
  }
};

}  // namespace lamina::LAMINA_CUDA_SPACE
