#pragma once
// Bounds on the error of a correct result of a Winograd convolution.
//
// A tile's outputs are sums over one transformed patch. So the error of an output depends on the whole patch, also on
// elements that the output does not use. u is the unit roundoff and C the number of channels. For each channel, |w|_1
// is the sum of the filter's absolute values, and |x|_max the largest absolute value of the patch. Then
//
//   |computed - exact| <= (C + 26) * u * growth * sum over channels of |w|_1 |x|_max,
//
// 26 is the sum of 8 roundings in each of three transforms (4 along each axis), one of the bias and one of old
// contents. For 5x5 filters it is 28, because the filter's transform has 5 roundings along each axis. `growth` is the
// square of a maximum over the outputs of a one-dimensional tile: of the sum over points a of |A[a]| * max over taps
// |G[a]| * (sum of |B[a]|).
//
// A weight gradient sums over the tiles of the batch. If |dy|_1 is the sum of a tile's absolute values,
//
//   |computed - exact| <= (tiles + 28) * u * growth * sum over tiles of |dy|_1 |x|_max,
//
// 28 is the sum of 8 roundings in each transform of x and dy, 10 in the last transform, one of old contents, and one of
// a partial sum. `growth` is the square of a maximum over the taps of a one-dimensional filter: of the sum over points
// a of |G[a]| * max over outputs |A[a]| * (sum of |B[a]|).

#include <optional>
#include <string>

#include "lamina/op.h"
#include "tests/support/numbers/bounds.h"

namespace lamina::test {

struct Winograd {
  int tile, taps;  ///< outputs and filter taps along one axis
  double growth;   ///< error growth of the two-dimensional transforms
  double weight_growth;
  int weights() const { return taps * taps; }  ///< weights of a filter
};

/// The numbers of "winograd_2x2" (points 0, 1, -1, infinity), "winograd_4x4" (points 0, 1/2, -1/2, 2, -2, infinity) and
/// "winograd_2x2" for 5x5 filters (points of winograd_4x4). Empty for other algorithms.
std::optional<Winograd> winograd_named(const std::string& algorithm, int taps = 3);

/// The matrix of a one-dimensional transform, as a list of columns.
using Columns = std::vector<Values>;

/// Checks that the sum over points of the products of the three matrices is 1 if input = output + tap, else 0. Returns
/// the growth.
double checked_growth(const Columns& output, const Columns& filter, const Columns& input);

Bound winograd_y_bound(const Winograd&, const Conv&, const Shape& x, const Feed&);
Bound winograd_dx_bound(const Winograd&, const Conv&, const Shape& x, const Feed&);
Bound winograd_dw_bound(const Winograd&, const Conv&, const Shape& x, const Feed&);

}  // namespace lamina::test
