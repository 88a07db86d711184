// Sigmoid and tanh.

#include "lamina/op.h"
#include "tests/support/backend.h"
#include "tests/support/cases/example.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case>& smooth_cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> some;
    for (const Op& op : {Op{Pointwise{Function::sigmoid}}, Op{Pointwise{Function::tanh}}}) {
      some.push_back({"map", op, {{2, 5, 3, 4}}});
      some.push_back({"vectors", op, {{3, 1, 1, 1}}});
      some.push_back({"long", op, {{2, 7, 9, 11}}});
      some.push_back({"inference", op, {{2, 7, 2, 1}}, {}, Mode::inference});
    }
    return some;
  }();
  return all;
}

/// The values of y for x, in inference.
Values values(const Op& op, const Values& x, DType dtype) {
  const Case c{"", op, {{1, static_cast<int>(x.size()), 1, 1}}, {}, Mode::inference};
  return run_case(c, {{x}, {}, {}, {}, {}, {}}, {.dtype = dtype}).y;
}

}  // namespace

TEST_CASE("sigmoid, by hand") {
  // y = 1/2 and 3/4.
  const Case c{"", Pointwise{Function::sigmoid}, {{1, 2, 1, 1}}};
  const Result result = run_case(c, {{{0, std::log(3.0)}}, {}, {}, {4, 16}, {}, {}});
  check_close("y", result.y, {0.5, 0.75}, {{1, 1}, 8}, epsilon(DType::f64));
  check_close("dx", result.dx[0], {1, 3}, {{1, 3}, 16}, epsilon(DType::f64));
}

TEST_CASE("tanh, by hand") {
  // tanh(ln 3) = (3 - 1/3) / (3 + 1/3) = 4/5.
  const Case c{"", Pointwise{Function::tanh}, {{1, 2, 1, 1}}};
  const Result result = run_case(c, {{{0, std::log(3.0)}}, {}, {}, {4, 25}, {}, {}});
  check_close("y", result.y, {0, 0.8}, {{1, 1}, 8}, epsilon(DType::f64));
  check_close("dx", result.dx[0], {4, 9}, {{4, 9}, 32}, epsilon(DType::f64));
}

TEST_CASE("sigmoid and tanh are exact to a few roundings from tiny to huge numbers") {
  Values x;
  for (const double size : {0x1p-40, 1e-4, 0.01, 0.3, 0.6, 1.0, 3.0, 8.0, 9.5, 20.0, 60.0, 80.0})
    for (const double sign : {-1.0, 1.0}) x.push_back(static_cast<float>(sign * size));
  for (const DType dtype : element_types()) {
    const Values sigmoids = values(Pointwise{Function::sigmoid}, x, dtype),
                 tanhs = values(Pointwise{Function::tanh}, x, dtype);
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO(x[i] << " in " << to_string(dtype));
      CHECK(std::abs(sigmoids[i] - 1 / (1 + std::exp(-x[i]))) <= 8 * epsilon(dtype) * sigmoids[i]);
      CHECK(std::abs(tanhs[i] - std::tanh(x[i])) <= 8 * epsilon(dtype) * std::abs(std::tanh(x[i])));
      CHECK(std::abs(tanhs[i]) <= 1);
    }
  }
}

TEST_CASE("sigmoid and tanh end at 0, -1 and 1, and keep NaN") {
  const double infinity = std::numeric_limits<double>::infinity();
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : element_types()) {
    const Values x{-infinity, -1e30, not_a_number, 1e30, infinity};
    const Values sigmoids = values(Pointwise{Function::sigmoid}, x, dtype),
                 tanhs = values(Pointwise{Function::tanh}, x, dtype);
    for (const std::size_t i : {0, 1}) {
      CHECK(sigmoids[i] >= 0);
      CHECK(sigmoids[i] < 1e-37);
      CHECK(tanhs[i] == -1);
    }
    for (const std::size_t i : {3, 4}) {
      CHECK(sigmoids[i] == 1);
      CHECK(tanhs[i] == 1);
    }
    CHECK((std::isnan(sigmoids[2]) && std::isnan(tanhs[2])));
  }
}

TEST_CASE("sigmoid and tanh agree with the oracle") { check_all_against_oracle(smooth_cases()); }

TEST_CASE("sigmoid and tanh have the gradients of their differences") { check_all_differences(smooth_cases()); }
