#pragma once
// The checks of shapes and numbers of an op: what infer() refuses. All arithmetic is in 64 bits on checked numbers, so
// no input can overflow it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lamina/error.h"
#include "lamina/op.h"

namespace lamina {

/// An op with its inputs. Every failure is a ShapeError that names both.
class ShapeChecks {
 public:
  ShapeChecks(const Op& op, const std::vector<Shape>& x) : op_(op), x_(x) {
    for (const Shape& shape : x) check_extent("an input", shape);
  }

 protected:
  static constexpr std::int64_t largest = std::numeric_limits<int>::max();
  static constexpr double largest_float = std::numeric_limits<float>::max();

  /// a / b for a positive b, rounded towards minus infinity.
  static constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

  /// Whether a x b x c is at most `largest`. All three are positive ints.
  static constexpr bool product_fits(std::int64_t a, std::int64_t b, std::int64_t c) {
    return a * b <= largest && a * b * c <= largest;
  }

  static bool fits_or_infinite(double number) { return std::abs(number) <= largest_float || std::isinf(number); }

  [[noreturn]] void fail(const std::string& what) const {
    std::string message = to_string(op_) + ": " + what;
    for (std::size_t i = 0; i < x_.size(); ++i) message += (i == 0 ? "; x: " : ", ") + to_string(x_[i]);
    throw ShapeError(message);
  }

  void takes(std::int64_t fewest, std::int64_t most) const {
    const auto given = static_cast<std::int64_t>(x_.size());
    if (given >= fewest && given <= most) return;
    const std::string more = most > fewest ? " or more" : "";
    fail("takes " + std::to_string(fewest) + more + (fewest == 1 && more.empty() ? " input, not " : " inputs, not ") +
         std::to_string(given));
  }

  const Shape& only_input() const {
    takes(1, 1);
    return x_.front();
  }

  void at_least(const char* what, int number, int smallest) const {
    if (number >= smallest) return;
    fail(std::string(what) + " is " + std::to_string(number) + ", but must be at least " + std::to_string(smallest));
  }
  void at_least(const char* what, Size number, int smallest) const {
    at_least(what, std::min(number.h, number.w), smallest);
  }
  void in_range(const char* what, bool holds, const char* range) const {
    if (!holds) fail(std::string(what) + " must be " + range);
  }

  void check_extent(const char* what, const Shape& shape) const {
    if (std::min({shape.n, shape.c, shape.h, shape.w}) < 1)
      fail(std::string(what) + " is empty: " + to_string(shape) + ", but every extent must be at least 1");
    if (!product_fits(shape.c, shape.h, shape.w))
      fail(std::string(what) + " has more than 2^31 - 1 elements per image: " + to_string(shape));
  }

  void check_geometry(const char* window_name, Size window, Size stride, Size pad) const {
    at_least(window_name, window, 1);
    at_least("stride", stride, 1);
    at_least("pad", pad, 0);
  }

  int padded(const char* axis, int before, int extent, int after) const {
    const std::int64_t sum = std::int64_t{before} + extent + after;
    if (sum > largest) fail("more than 2^31 - 1 " + std::string(axis));
    return static_cast<int>(sum);
  }

  /// Windows along one axis, with the same padding at both ends.
  struct Windows {
    int size, stride, pad, dilation = 1;
  };

  /// The number of windows along an axis. It also makes sure that every index that a window reaches fits an int.
  int windows(const char* axis, int extent, const Windows& its, Rounding rounding) const {
    const std::int64_t stride = its.stride, padded = std::int64_t{extent} + 2 * std::int64_t{its.pad};
    const std::int64_t reach = its.dilation * (std::int64_t{its.size} - 1) + 1;
    if (padded > largest) fail("with its padding the input has more than 2^31 - 1 " + std::string(axis));

    const std::int64_t rounded_up_by = rounding == Rounding::up ? stride - 1 : 0;
    std::int64_t count = floor_divide(padded - reach + rounded_up_by, stride) + 1;
    if (rounding == Rounding::up && (count - 1) * stride >= std::int64_t{extent} + its.pad) --count;
    if (count < 1)
      fail("a window of " + std::to_string(reach) + ' ' + axis + " does not fit into " + std::to_string(padded) +
           (its.pad > 0 ? " with padding" : ""));
    if ((count - 1) * stride + reach > largest) fail("a window ends beyond 2^31 - 1 " + std::string(axis));
    return static_cast<int>(count);
  }

  /// The inverse of windows(): the extent that has `extent` windows, plus `more` at its end.
  int spread(const char* axis, int extent, const Windows& its, int more) const {
    const std::int64_t reach = its.dilation * (std::int64_t{its.size} - 1) + 1;
    const std::int64_t whole = (std::int64_t{extent} - 1) * its.stride + reach + more;
    if (whole > largest) fail("with its padding the result has more than 2^31 - 1 " + std::string(axis));
    return static_cast<int>(std::max<std::int64_t>(whole - 2 * std::int64_t{its.pad}, 0));
  }

  void check_ids(const Shape& x, int vocabulary) const {
    at_least("vocabulary", vocabulary, 1);
    if (vocabulary > 1 << 24) fail("vocabulary is above 2^24; larger ids are not exact in f32");
    if (x.c != 1) fail("ids have one channel, not " + std::to_string(x.c));
  }

  Inferred result(const Shape& y, std::vector<Shape> params = {}, std::vector<Shape> state = {}) const {
    check_extent("the result", y);
    return {y, std::move(params), std::move(state)};
  }

  const Op& op_;
  const std::vector<Shape>& x_;
};

}  // namespace lamina
