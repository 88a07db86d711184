// Winograd's F(4x4, 3x3) on the host: its matrices, and its launchers against the oracle where blocks have edges.

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "../../kernels/conv_winograd_4x4.h"
#include "../../kernels/winograd_4x4.h"
#include "support/backend.h"
#include "support/catch.h"
#include "support/suite.h"
#include "support/winograd_bounds.h"

using namespace lamina;
using namespace lamina::test;
using namespace lamina::cuda_host;

namespace {

using Points = std::array<double, winograd_patch>;

/// Column `i` of a matrix that is given as the function of a vector.
template <std::size_t from, std::size_t to>
std::array<double, to> column(void (*transform)(const double (&)[from], double (&)[to]), std::size_t i) {
  double unit[from] = {}, image[to];
  unit[i] = 1;
  transform(unit, image);
  std::array<double, to> result;
  for (std::size_t k = 0; k < to; ++k) result[k] = image[k];
  return result;
}

Points input_column(std::size_t i) { return column<winograd_patch, winograd_patch>(winograd_input<double>, i); }
Points filter_column(std::size_t i) { return column<3, winograd_patch>(winograd_filter<double>, i); }
std::array<double, winograd_tile> output_column(std::size_t i) {
  return column<winograd_patch, winograd_tile>(winograd_output<double>, i);
}

/// Memory as a launcher asks for it: T, aligned to 16 bytes, full of NaN, in a vector that knows its end.
template <class T>
struct Block {
  explicit Block(std::size_t count) : memory(count + 16 / sizeof(T), static_cast<T>(NAN)) {}
  explicit Block(const Values& values) : Block(values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) data()[i] = static_cast<T>(values[i]);
  }
  T* data() { return memory.data() + (16 - reinterpret_cast<std::uintptr_t>(memory.data()) % 16) % 16 / sizeof(T); }
  std::vector<T> memory;
};

template <class T>
View<T> dense(T* data, const Shape& shape) {
  return {data, shape.n, shape.c, shape.h, shape.w, shape.image()};
}

template <class T>
Values run(const WinogradFilters& filters, const Values& w, const Values& x, const Shape& x_shape, const Values* bias,
           const Shape& y_shape, Size pad) {
  Block<T> weights(w), transformed(static_cast<std::size_t>(winograd_4x4_filter_count<T>(filters)));
  winograd_4x4_filters<T>(nullptr, filters, weights.data(), transformed.data());
  Block<T> from(x), to(static_cast<std::size_t>(y_shape.count())), biases(bias == nullptr ? Values{} : *bias);
  winograd_4x4<T>(nullptr, {filters,
                            transformed.data(),
                            dense<const T>(from.data(), x_shape),
                            {},
                            dense(to.data(), y_shape),
                            bias == nullptr ? nullptr : biases.data(),
                            pad.h,
                            pad.w,
                            false,
                            false});
  return {to.data(), to.data() + y_shape.count()};
}

template <class T>
void check(const Conv& op, const Shape& x, std::uint64_t key) {
  const Case c{"", op, {x}};
  INFO(to_string(c) << ", " << sizeof(T) << " bytes");
  const Feed feed = make_feed(c, key);
  const Result want = reference(c, feed);
  const Bounds bounds = bounds_of(c, feed, {"winograd_4x4", "", "winograd_4x4"});
  const double eps = epsilon(sizeof(T) == 8 ? DType::f64 : DType::f32);
  const Shape y = infer(op, {x}).y;
  const int filters = op.channels / op.groups, channels = x.c / op.groups;
  check_close(
      "y",
      run<T>({op.groups, filters, channels, false}, feed.w[0], feed.x[0], x, op.bias ? &feed.w[1] : nullptr, y, op.pad),
      want.y, bounds.y, eps);
  check_close(
      "dx",
      run<T>({op.groups, channels, filters, true}, feed.w[0], feed.dy, y, nullptr, x, {2 - op.pad.h, 2 - op.pad.w}),
      want.dx[0], bounds.dx[0], eps);
}

}  // namespace

TEST_CASE("Winograd's matrices make a correlation of four outputs and three taps") {
  for (std::size_t tap = 0; tap < 3; ++tap)
    for (std::size_t input = 0; input < winograd_patch; ++input) {
      const Points u = filter_column(tap), v = input_column(input);
      for (std::size_t output = 0; output < winograd_tile; ++output) {
        double y = 0;
        for (std::size_t a = 0; a < winograd_patch; ++a) y += output_column(a)[output] * u[a] * v[a];
        CHECK(std::abs(y - (input == output + tap ? 1 : 0)) < 1e-14);
      }
    }
}

TEST_CASE("Winograd's matrices enlarge errors as the bounds say") {
  double largest = 0;
  for (std::size_t output = 0; output < winograd_tile; ++output) {
    double sum = 0;
    for (std::size_t a = 0; a < winograd_patch; ++a) {
      double tap = 0, patch = 0;
      for (std::size_t i = 0; i < 3; ++i) tap = std::max(tap, std::abs(filter_column(i)[a]));
      for (std::size_t i = 0; i < winograd_patch; ++i) patch += std::abs(input_column(i)[a]);
      sum += std::abs(output_column(a)[output]) * tap * patch;
    }
    largest = std::max(largest, sum);
  }
  CHECK(largest * largest == Approx(winograd_named("winograd_4x4")->growth).epsilon(1e-12));
}

TEST_CASE("Winograd agrees with the oracle at the edges of tiles, blocks and steps") {
  std::uint64_t key = 0;
  for (const int pad : {0, 1, 2, 3})
    for (const Shape& x : {Shape{1, 2, 3, 3}, Shape{2, 1, 4, 9}, Shape{1, 3, 7, 6}, Shape{3, 5, 8, 12}}) {
      const Conv op{.channels = 3, .kernel = 3, .pad = {pad, (pad + 1) % 3}, .bias = pad % 2 == 0};
      check<double>(op, x, ++key);
      check<float>(op, x, key);
    }
  // One more filter than a block has, one fewer, and in groups; more tiles than a block has, in several images.
  check<float>(Conv{.channels = 33, .kernel = 3, .pad = 1}, {1, 4, 5, 5}, ++key);
  check<float>(Conv{.channels = 62, .kernel = 3, .pad = 1, .groups = 2}, {1, 6, 5, 8}, ++key);
  check<float>(Conv{.channels = 2, .kernel = 3, .pad = 1}, {5, 33, 13, 11}, ++key);
  check<double>(Conv{.channels = 17, .kernel = 3, .pad = 1}, {1, 17, 9, 21}, ++key);
  check<double>(Conv{.channels = 15, .kernel = 3, .groups = 5}, {2, 35, 6, 5}, ++key);
}
