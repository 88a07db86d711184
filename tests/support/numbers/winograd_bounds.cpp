// The bounds of Winograd convolutions, computed by loops over all elements that a tile may read.

#include "tests/support/numbers/winograd_bounds.h"

#include "tests/support/catch.h"

namespace lamina::test {
namespace {

// roundings besides the sum over channels
double roundings(const Winograd& winograd) { return winograd.taps == 5 ? 28 : 26; }
constexpr double weight_roundings = 28;

/// The absolute values of the elements in the part of a square that is inside the plane.
Values square(const Shape& shape, const Values& values, int n, int c, int h, int w, int side) {
  const double* const plane = values.data() + (std::int64_t{n} * shape.c + c) * shape.plane();
  Values inside;
  for (int i = std::max(h, 0); i < std::min(h + side, shape.h); ++i)
    for (int j = std::max(w, 0); j < std::min(w + side, shape.w); ++j)
      inside.push_back(std::abs(plane[std::int64_t{i} * shape.w + j]));
  return inside;
}

/// The sums of |terms| of y, a convolution of x. norm(group, output, input) is the sum of |w| of a filter for one
/// input.
template <class Norm>
Values terms(const Winograd& winograd, const Shape& x_shape, const Values& x, const Shape& y_shape, Size pad,
             int groups, const Norm& norm) {
  Values result(static_cast<std::size_t>(y_shape.count()));
  const int inputs = x_shape.c / groups, outputs = y_shape.c / groups;
  for (int n = 0; n < y_shape.n; ++n)
    for (int c = 0; c < x_shape.c; ++c)
      for (int p = 0; p < y_shape.h; ++p)
        for (int q = 0; q < y_shape.w; ++q) {
          const int group = c / inputs, before = winograd.tile - 1, side = 2 * winograd.tile + winograd.taps - 2;
          // the rows and columns that a tile with the output (p, q) may read
          const double largest = largest_of(square(x_shape, x, n, c, p - pad.h - before, q - pad.w - before, side));
          for (int k = 0; k < outputs; ++k) {
            const std::int64_t channel = std::int64_t{n} * y_shape.c + group * outputs + k;
            result[static_cast<std::size_t>((channel * y_shape.h + p) * y_shape.w + q)] +=
                norm(group, k, c % inputs) * largest;
          }
        }
  return result;
}

/// The sum of |w| of filter k for channel c. Both indices are within the group.
double filter_norm(const Values& w, int weights, std::int64_t filters, std::int64_t channels, int group, int k, int c) {
  const double* const filter = w.data() + ((group * filters + k) * channels + c) * weights;
  double sum = 0;
  for (int i = 0; i < weights; ++i) sum += std::abs(filter[i]);
  return sum;
}

}  // namespace

std::optional<Winograd> winograd_named(const std::string& algorithm, int taps) {
  if (algorithm == "winograd_2x2" && taps == 3) return Winograd{2, 3, 4 * 4, 4 * 4};
  if (algorithm == "winograd_4x4" && taps == 3) return Winograd{4, 3, 15.25 * 15.25, 16.25 * 16.25};
  if (algorithm == "winograd_2x2" && taps == 5) return Winograd{2, 5, 18.25 * 18.25, 14.75 * 14.75};
  return {};
}

Bound winograd_dw_bound(const Winograd& winograd, const Conv& op, const Shape& x, const Feed& feed) {
  const Shape y = infer(op, {x}).y;
  const int filters = op.channels / op.groups, channels = x.c / op.groups, tile = winograd.tile;
  Values result(static_cast<std::size_t>(std::int64_t{op.channels} * channels * winograd.weights()));
  double tiles = 0;
  for (int n = 0; n < y.n; ++n)
    for (int p = 0; p < y.h; p += tile)
      for (int q = 0; q < y.w; q += tile) {
        ++tiles;
        std::vector<double> largest;
        for (int c = 0; c < x.c; ++c)
          largest.push_back(
              largest_of(square(x, feed.x[0], n, c, p - op.pad.h, q - op.pad.w, tile + winograd.taps - 1)));
        for (int k = 0; k < op.channels; ++k) {
          const Values dy = square(y, feed.dy, n, k, p, q, tile);
          const double sum = std::accumulate(dy.begin(), dy.end(), 0.0);
          for (int c = 0; c < channels; ++c)
            for (int tap = 0; tap < winograd.weights(); ++tap)
              result[static_cast<std::size_t>((std::int64_t{k} * channels + c) * winograd.weights() + tap)] +=
                  sum * largest[static_cast<std::size_t>(std::int64_t{k} / filters * channels + c)];
        }
      }
  return {std::move(result), (tiles + weight_roundings) * winograd.weight_growth};
}

double checked_growth(const Columns& output, const Columns& filter, const Columns& input) {
  double growth = 0;
  for (std::size_t o = 0; o < output[0].size(); ++o) {
    double sum = 0;
    for (std::size_t a = 0; a < output.size(); ++a) {
      double tap = 0, patch = 0;
      for (const Values& column : filter) tap = std::max(tap, std::abs(column[a]));
      for (const Values& column : input) patch += std::abs(column[a]);
      sum += std::abs(output[a][o]) * tap * patch;
    }
    growth = std::max(growth, sum * sum);
    for (std::size_t r = 0; r < filter.size(); ++r)
      for (std::size_t d = 0; d < input.size(); ++d) {
        double factor = 0;
        for (std::size_t a = 0; a < output.size(); ++a) factor += output[a][o] * filter[r][a] * input[d][a];
        CHECK(std::abs(factor - (d == o + r ? 1 : 0)) < 1e-14);
      }
  }
  return growth;
}

Bound winograd_y_bound(const Winograd& winograd, const Conv& op, const Shape& x, const Feed& feed) {
  const Shape y = infer(op, {x}).y;
  const int filters = op.channels / op.groups, channels = x.c / op.groups;
  Values result = terms(winograd, x, feed.x[0], y, op.pad, op.groups, [&](int group, int k, int c) {
    return filter_norm(feed.w[0], winograd.weights(), filters, channels, group, k, c);
  });
  if (op.bias)
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] += std::abs(feed.w[1][i / static_cast<std::size_t>(y.plane()) % static_cast<std::size_t>(y.c)]);
  return {std::move(result), (channels + roundings(winograd)) * winograd.growth};
}

Bound winograd_dx_bound(const Winograd& winograd, const Conv& op, const Shape& x, const Feed& feed) {
  const Shape y = infer(op, {x}).y;
  const int filters = op.channels / op.groups, channels = x.c / op.groups;
  return {terms(winograd, y, feed.dy, x, {winograd.taps - 1 - op.pad.h, winograd.taps - 1 - op.pad.w}, op.groups,
                [&](int group, int c, int k) {
                  return filter_norm(feed.w[0], winograd.weights(), filters, channels, group, k, c);
                }),
          (filters + roundings(winograd)) * winograd.growth};
}

}  // namespace lamina::test
