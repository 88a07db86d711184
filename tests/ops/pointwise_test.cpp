// Clip, hard sigmoid, hard swish and SiLU.

#include "lamina/op.h"
#include "tests/support/backend.h"
#include "tests/support/cases/example.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

const std::vector<Op>& ops() {
  static const std::vector<Op> all = {Clip{.low = 0, .high = 6}, Clip{.low = -1.5, .high = 0.5},
                                      Clip{.low = -infinity, .high = 0.75},
                                      // f16 and bf16 do not have these numbers
                                      Clip{.low = double{-0.3F}, .high = double{0.7F}}, HardSigmoid{},
                                      HardSigmoid{.alpha = -0.4, .beta = 0.25}, HardSwish{}, Silu{}};
  return all;
}

std::vector<Case> pointwise_cases(const Op& op) {
  return {{"map", op, {{2, 5, 3, 4}}},
          {"vectors", op, {{3, 1, 1, 1}}},
          {"long", op, {{2, 7, 9, 11}}},
          {"inference", op, {{2, 7, 2, 1}}, {}, Mode::inference}};
}

Result run(const Op& op, const Values& x, DType dtype) {
  const Case c{"", op, {{1, static_cast<int>(x.size()), 1, 1}}};
  return run_case(c, {{x}, {}, {}, Values(x.size(), 1), {}, {}}, {.dtype = dtype});
}

}  // namespace

TEST_CASE("clip, by hand: the gradient at both bounds is 0") {
  check_example({"", Clip{.low = -1, .high = 2}, {{1, 1, 1, 5}}},
                {{{-3, -1, 0.5, 2, 7}}, {}, {}, {5, 6, 7, 8, 9}, {}, {}},
                {{-1, -1, 0.5, 2, 2}, {{0, 0, 7, 0, 0}}, {}, {}});
}

TEST_CASE("hard sigmoid, by hand: no gradient where y is 0 or 1") {
  check_example({"", HardSigmoid{.alpha = 0.25, .beta = 0.5}, {{1, 1, 1, 5}}},
                {{{-3, -2, 1, 2, 9}}, {}, {}, {4, 4, 4, 4, 4}, {}, {}},
                {{0, 0, 0.75, 1, 1}, {{0, 0, 1, 0, 0}}, {}, {}});
}

TEST_CASE("hard swish, by hand: the gradient is 0 up to -3, and dy from 3 on") {
  check_example({"", HardSwish{}, {{1, 1, 1, 6}}}, {{{-4, -3, -1.5, 1.5, 3, 5}}, {}, {}, {2, 2, 2, 2, 2, 2}, {}, {}},
                {{0, 0, -0.375, 1.125, 3, 5}, {{0, 0, 0, 2, 2, 2}}, {}, {}});
}

TEST_CASE("silu, by hand") {
  // s is 1/2 and 3/4 at x = 0 and x = ln 3.
  const double x = std::log(3.0);
  const Case c{"", Silu{}, {{1, 2, 1, 1}}};
  const Result result = run_case(c, {{{0, x}}, {}, {}, {4, 16}, {}, {}});
  check_close("y", result.y, {0, 0.75 * x}, {{1, 1}, 8}, epsilon(DType::f64));
  check_close("dx", result.dx[0], {2, 12 + 3 * x}, {{2, 16}, 24}, epsilon(DType::f64));
}

TEST_CASE("pointwise ops keep NaN, and take infinities and huge numbers to their limits") {
  const Values x{-infinity, -1e30, std::numeric_limits<double>::quiet_NaN(), 1e30, infinity};
  for (const DType dtype : element_types()) {
    INFO(to_string(dtype));
    const auto check = [&](const Op& op, const Values& y, const Values& dx) {
      INFO(to_string(op));
      const Result got = run(op, x, dtype);
      for (const std::size_t i : {0, 1, 3, 4}) {
        CHECK(got.y[i] == static_cast<float>(y[i]));
        CHECK(got.dx[0][i] == dx[i]);
      }
      CHECK(std::isnan(got.y[2]));
    };
    const double large = dtype == DType::f64 ? 1e30 : static_cast<float>(1e30);
    const Values none(5, 0), above{0, 0, 0, 1, 1};
    const auto limits = [&](const Op& op, double high) {
      INFO(to_string(op));
      const Result got = run(op, x, dtype);
      CHECK((got.y[0] == 0 && got.y[1] == 0 && got.y[3] == large && got.y[4] == high && std::isnan(got.y[2])));
      for (const std::size_t i : {0, 1, 3, 4}) CHECK(std::abs(got.dx[0][i] - above[i]) < 1e-30);
    };
    check(Clip{.low = 0, .high = 6}, {0, 0, 0, 6, 6}, none);
    check(HardSigmoid{}, {0, 0, 0, 1, 1}, none);
    limits(HardSwish{}, infinity);
    limits(Silu{}, infinity);
  }
}

TEST_CASE("silu and its gradient are exact to a few roundings from tiny to huge numbers") {
  Values x;
  for (const double size : {0x1p-40, 1e-4, 0.01, 0.3, 1.0, 3.0, 9.5, 20.0, 60.0, 80.0})
    for (const double sign : {-1.0, 1.0}) x.push_back(static_cast<float>(sign * size));
  for (const DType dtype : element_types()) {
    const Result got = run(Silu{}, x, dtype);
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO(x[i] << " in " << to_string(dtype));
      const double s = 1 / (1 + std::exp(-x[i])), rest = 1 / (1 + std::exp(x[i]));
      CHECK(std::abs(got.y[i] - x[i] * s) <= 9 * epsilon(dtype) * std::abs(x[i] * s));
      CHECK(std::abs(got.dx[0][i] - s * (1 + x[i] * rest)) <= 24 * epsilon(dtype) * s * (1 + std::abs(x[i])));
    }
  }
}

TEST_CASE("pointwise ops agree with the oracle") {
  for (const Op& op : ops()) check_all_against_oracle(pointwise_cases(op));
}

TEST_CASE("clip is exact in whole numbers") { check_all_integers(pointwise_cases(Clip{.low = -2, .high = 3})); }

TEST_CASE("pointwise ops have the gradients of their differences") {
  for (const Op& op : ops())
    for (const Case& c : pointwise_cases(op))
      if (c.mode == Mode::training) check_differences(c);
}
