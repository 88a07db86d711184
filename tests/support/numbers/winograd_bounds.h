#pragma once
// How far a correct result of a Winograd convolution may be from the exact one.
//
// A tile's outputs are sums over one transformed patch, so the error of an output depends on the whole patch,
// also on elements that the output skips. With u the unit roundoff, C channels, and per channel |w|_1 the sum of
// the filter's absolute values and |x|_max the largest absolute value of the patch,
//
//   |computed - exact| <= (C + 26) * u * growth * sum over channels of |w|_1 |x|_max,
//
// 26 = 8 roundings in each of the three transforms (4 along each axis), one of the bias, one of an old content; 28 for
// filters of 5x5, whose transform has 5 along each axis. growth = the square of the largest, over the outputs of a
// one-dimensional tile, of sum over points a of |A[a]| * max over taps |G[a]| * (sum over the patch of |B[a]|).
//
// A weight gradient sums over the tiles of the batch. With |dy|_1 the sum of a tile's absolute values,
//
//   |computed - exact| <= (tiles + 28) * u * growth * sum over tiles of |dy|_1 |x|_max,
//
// 28 = 8 roundings in each of the transforms of x and dy, 10 in the last one, an old content and a partial sum; growth
// = the square of the largest, over the taps of a one-dimensional filter, of sum over points a of |G[a]| * max over
// outputs |A[a]| * (sum over the patch of |B[a]|).

#include <optional>
#include <string>

#include "lamina/op.h"
#include "tests/support/numbers/bounds.h"

namespace lamina::test {

struct Winograd {
  int tile, taps;  ///< outputs and filter taps along one axis
  double growth;   ///< growth by its transforms, in two dimensions
  double weight_growth;
  int weights() const { return taps * taps; }  ///< weights of a filter
};

/// The numbers of "winograd_2x2" (points 0, 1, -1, infinity), of "winograd_4x4" (0, 1/2, -1/2, 2, -2, infinity), and of
/// "winograd_2x2" with filters of 5x5 (points as winograd_4x4); empty for other algorithms.
std::optional<Winograd> winograd_named(const std::string& algorithm, int taps = 3);

/// The matrix of a one-dimensional transform, by its columns.
using Columns = std::vector<Values>;

/// Checks that the sum over points of an output's, a filter's and an input's matrix is 1 where input = output + tap,
/// else 0. Returns the growth.
double checked_growth(const Columns& output, const Columns& filter, const Columns& input);

Bound winograd_y_bound(const Winograd&, const Conv&, const Shape& x, const Feed&);
Bound winograd_dx_bound(const Winograd&, const Conv&, const Shape& x, const Feed&);
Bound winograd_dw_bound(const Winograd&, const Conv&, const Shape& x, const Feed&);

}  // namespace lamina::test
