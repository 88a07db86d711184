#pragma once
// A convolution with tensors of small whole numbers on the device, for tests that call launchers. The checks compare
// the launchers of one algorithm with the definition. Every bit must be equal.

#include <cstdint>
#include <vector>

#include "kernels/conv/conv_direct.h"
#include "kernels/conv/conv_implicit_gemm.h"
#include "resident.h"
#include "tests/support/numbers/values.h"

namespace lamina::LAMINA_CUDA_SPACE {

using test::integers;

/// A convolution with its tensors. Between the images of x and of y are gaps of `gap` elements.
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

// The checks take a tile and a number of ranges. With 0 ranges the algorithm chooses the number.

template <class Launchers, class T>
void check_forward(const ConvProblem<T>& c, ConvTile tile, bool adds, bool relu, int ranges = 0) {
  const Resident<T> want(adds ? c.dy.values : std::vector<T>(c.dy.values.size(), T(77))), got(want.values);
  const ConvEnd<T> end{c.bias.data(), adds, relu};
  ConvDirect::forward<T>(tested_stream(), c.g, c.x_view(), c.w.data(), c.y_view(want), end);
  const Resident<T> partial = scratch<T>(Launchers::template forward_bytes<T>(c.g, c.x_view(), c.y_view(got), ranges));
  Launchers::template forward<T>(tested_stream(), c.g, c.x_view(), c.w.data(), c.y_view(got), end, partial.data(),
                                 ranges, tile);
  CHECK(got.now() == want.now());
}

template <class Launchers, class T>
void check_data(const ConvProblem<T>& c, ConvTile tile, bool adds, int ranges = 0) {
  std::vector<T> before = c.dx_old;
  const Resident<T> want(before);
  ConvDirect::backward_data<T>(tested_stream(), c.g, c.w.data(), c.gradient(), c.dx_view(want), adds);
  for (int n = 0; n < c.x_shape.n && !adds; ++n)
    std::fill_n(before.begin() + n * c.x_shape.pitch, c.x_shape.image(), T(NAN));
  const Resident<T> got(before);
  const Resident<T> partial =
      scratch<T>(Launchers::template backward_data_bytes<T>(c.g, c.gradient().dy, c.dx_view(got), ranges));
  Launchers::template backward_data<T>(tested_stream(), c.g, c.w.data(), c.gradient(), c.dx_view(got), adds,
                                       partial.data(), ranges, tile);
  CHECK(got.now() == want.now());
}

template <class Launchers, class T>
void check_weights(const ConvProblem<T>& c, ConvTile tile, bool adds, int ranges) {
  const Resident<T> want(c.dw_old), got(c.dw_old);
  ConvDirect::backward_weights<T>(tested_stream(), c.g, c.x_view(), c.gradient(), want.data(), nullptr, adds);
  const Resident<T> partial =
      scratch<T>(Launchers::template backward_weights_bytes<T>(c.g, c.x_view(), c.gradient().dy, ranges));
  Launchers::template backward_weights<T>(tested_stream(), c.g, c.x_view(), c.gradient(), got.data(), partial.data(),
                                          adds, ranges, tile);
  CHECK(got.now() == want.now());
}

template <class Launchers, class T>
void check_all(const ConvProblem<T>& c, ConvTile tile) {
  check_forward<Launchers>(c, tile, !c.masked, true);
  check_forward<Launchers>(c, tile, c.masked, c.masked);
  check_data<Launchers>(c, tile, c.masked);
  check_forward<Launchers>(c, tile, c.masked, !c.masked, 3);
  check_forward<Launchers>(c, tile, true, true, 3);
  check_data<Launchers>(c, tile, !c.masked, 2);
  check_weights<Launchers>(c, tile, !c.masked, 1);
  check_weights<Launchers>(c, tile, c.masked, 3);
}

constexpr ConvTile tiles[] = {ConvTile::tile_128x128, ConvTile::tile_64x128, ConvTile::tile_64x64};

}  // namespace lamina::LAMINA_CUDA_SPACE
