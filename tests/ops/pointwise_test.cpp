// Functions of one element.

#include "lamina/graph.h"
#include "tests/support/cases/plans.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

const std::vector<Op> ops = [] {
  std::vector<Op> all = {
      Pointwise{Function::clip, 0, 6},
      Pointwise{Function::clip, -1.5, 0.5},
      Pointwise{Function::clip, -infinity, 0.75},
      Pointwise{Function::clip, double{-0.3F}, double{0.7F}},  // f16 and bf16 cannot hold these bounds
      Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5},
      Pointwise{Function::hard_sigmoid, -0.4, 0.25},
      Pointwise{Function::leaky_relu, 0.2},
      Pointwise{Function::leaky_relu, 0},
      Pointwise{Function::leaky_relu, 1.5},
      Pointwise{Function::elu, 1, 1},
      Pointwise{Function::elu, selu_alpha, selu_scale},
      Pointwise{Function::celu, 0.3},
      Pointwise{Function::celu, 2},
      Pointwise{Function::pow, 2},
      Pointwise{Function::pow, 3}};
  for (const Function function :
       {Function::sigmoid, Function::tanh, Function::hard_swish, Function::silu, Function::gelu, Function::gelu_tanh,
        Function::softplus, Function::mish, Function::exp, Function::abs})
    all.emplace_back(Pointwise{function});
  return all;
}();

/// Functions of positive numbers.
const std::vector<Op> ops_above_zero = {Pointwise{Function::log},       Pointwise{Function::sqrt},
                                        Pointwise{Function::pow, -0.5}, Pointwise{Function::pow, 0.5},
                                        Pointwise{Function::pow, 2.3},  Pointwise{Function::pow, -1}};

std::vector<Case> pointwise_cases(const Op& op) {
  return {{"map", op, {{2, 5, 3, 4}}},
          {"vectors", op, {{3, 1, 1, 1}}},
          {"long", op, {{2, 7, 9, 11}}},
          {"inference", op, {{2, 7, 2, 1}}, {}, Mode::inference}};
}

Result run(const Op& op, const Values& x, DType dtype) {
  const Case c{"", op, {{1, static_cast<int>(x.size()), 1, 1}}};
  return run_case(c, {{x}, {}, {}, Values(x.size(), 1)}, {.dtype = dtype});
}

}  // namespace

TEST_CASE("clip, by hand: the gradient at both bounds is 0") {
  check_example({"", Pointwise{Function::clip, -1, 2}, {{1, 1, 1, 5}}},
                {{{-3, -1, 0.5, 2, 7}}, {}, {}, {5, 6, 7, 8, 9}}, {{-1, -1, 0.5, 2, 2}, {{0, 0, 7, 0, 0}}});
}

TEST_CASE("hard sigmoid, by hand: the gradient is 0 where y is 0 or 1") {
  check_example({"", Pointwise{Function::hard_sigmoid, 0.25, 0.5}, {{1, 1, 1, 5}}},
                {{{-3, -2, 1, 2, 9}}, {}, {}, {4, 4, 4, 4, 4}}, {{0, 0, 0.75, 1, 1}, {{0, 0, 1, 0, 0}}});
}

TEST_CASE("hard swish, by hand: the gradient is 0 up to -3, and dy from 3 on") {
  check_example({"", Pointwise{Function::hard_swish}, {{1, 1, 1, 6}}},
                {{{-4, -3, -1.5, 1.5, 3, 5}}, {}, {}, {2, 2, 2, 2, 2, 2}},
                {{0, 0, -0.375, 1.125, 3, 5}, {{0, 0, 0, 2, 2, 2}}});
}

TEST_CASE("silu, by hand") {
  // The logistic function is 1/2 at x = 0 and 3/4 at x = ln 3.
  const double x = std::log(3.0);
  check_example({"", Pointwise{Function::silu}, {{1, 2, 1, 1}}}, {{{0, x}}, {}, {}, {4, 16}},
                {{0, 0.75 * x}, {{2, 12 + 3 * x}}});
}

TEST_CASE("leaky relu, the absolute value and a square, by hand") {
  const auto check = [](const Op& op, const Values& y, const Values& dx) {
    check_example({"", op, {{1, 1, 1, 3}}}, {{{-2, 0, 3}}, {}, {}, {4, 5, 6}}, {y, {dx}});
  };
  check(Pointwise{Function::leaky_relu, 0.25}, {-0.5, 0, 3}, {1, 1.25, 6});
  check(Pointwise{Function::abs}, {2, 0, 3}, {-4, 0, 6});
  check(Pointwise{Function::pow, 2}, {4, 0, 9}, {-16, 0, 36});
}

TEST_CASE("functions of exponentials, by hand") {
  const double x = std::log(2.0);
  const auto check = [&](const Op& op, double y, double slope, bool minus = true) {
    INFO(to_string(op));
    const Result got = run(op, {minus ? -x : x}, DType::f64);
    check_close("y", got.y, {y}, {{std::abs(y)}, 16}, epsilon(DType::f64));
    check_close("dx", got.dx[0], {slope}, {{1}, 16}, epsilon(DType::f64));
  };
  check(Pointwise{Function::sigmoid}, 1.0 / 3, 2.0 / 9);
  check(Pointwise{Function::tanh}, -0.6, 0.64);
  check(Pointwise{Function::elu, 3, 2}, -3, 3);
  check(Pointwise{Function::elu, 3, 2}, 2 * x, 2, false);
  check(Pointwise{Function::celu, 0.5}, -0.375, 0.25);
  check(Pointwise{Function::softplus}, std::log(1.5), 1.0 / 3);
  check(Pointwise{Function::mish}, -x * 5 / 13,
        5.0 / 13 - x * 48 / 169);  // exp(x) = 1/2, and n = (1 + exp(x))^2 - 1 = 5/4
  check(Pointwise{Function::exp}, 0.5, 0.5);
  check(Pointwise{Function::log}, std::log(x), 1 / x, false);
  check(Pointwise{Function::sqrt}, std::sqrt(x), 0.5 / std::sqrt(x), false);
  check(Pointwise{Function::pow, -2}, 1 / (x * x), 2 / (x * x * x));
}

TEST_CASE("pointwise ops keep NaN, and have the right limits at infinities and huge numbers") {
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
    check(Pointwise{Function::tanh}, {-1, -1, 0, 1, 1}, none);
    check(Pointwise{Function::clip, 0, 6}, {0, 0, 0, 6, 6}, none);
    check(Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5}, {0, 0, 0, 1, 1}, none);
    for (const auto f : {Function::hard_swish, Function::silu, Function::gelu, Function::gelu_tanh, Function::mish})
      limits(Pointwise{f}, infinity);
    for (const Op& op : ops) CHECK(std::isnan(run(op, x, dtype).y[2]));
    const Values sigmoid = run(Pointwise{Function::sigmoid}, x, dtype).y;
    for (const std::size_t i : {0, 1}) CHECK((sigmoid[i] >= 0 && sigmoid[i] < 1e-37 && sigmoid[i + 3] == 1));
    const Result exponentials = run(Pointwise{Function::exp}, x, dtype);
    CHECK((exponentials.y[0] == 0 && exponentials.y[1] == 0 && exponentials.y[3] == infinity));
    const Values ends{-infinity, -1, 0, infinity};
    const auto of = [&](Function f, double a = 0) { return run(Pointwise{f, a}, ends, dtype); };
    const Result logarithms = of(Function::log), roots = of(Function::sqrt), odd = of(Function::pow, -5);
    CHECK((std::isnan(logarithms.y[1]) && logarithms.y[2] == -infinity && logarithms.y[3] == infinity));
    CHECK((std::isnan(roots.y[1]) && roots.y[2] == 0 && roots.dx[0][2] == infinity && roots.y[3] == infinity));
    CHECK((odd.y[0] == 0 && odd.y[1] == -1 && odd.y[2] == infinity && odd.y[3] == 0));
    CHECK((std::isnan(of(Function::pow, 1.7).y[1]) && of(Function::pow, 0.3).y[0] == infinity));
  }
}

TEST_CASE("functions of exponentials and their gradients have errors of a few roundings for tiny to huge numbers") {
  using Number = long double;
  struct Formula {
    Op op;
    Number (*y)(Number x);
    Number (*slope)(Number x);
    bool relative;         // whether the error is relative to y; if not, it is relative to x
    double roundings = 9;  // allowed error of y
  };
  static constexpr auto logistic = [](Number x) { return 1 / (1 + std::exp(-x)); };
  static constexpr auto t = [](Number x) { return std::tanh(std::log1p(std::exp(x))); };
  static constexpr auto normal = [](Number x) { return std::erfc(-x / std::sqrt(Number{2})) / 2; };
  static constexpr auto u = [](Number x) { return 0.79788456080286535588L * (x + 0.044715L * x * x * x); };
  const std::vector<Formula> formulas = {
      {Pointwise{Function::sigmoid}, logistic, [](Number x) { return logistic(x) * logistic(-x); }, true, 8},
      {Pointwise{Function::tanh}, [](Number x) { return std::tanh(x); },
       [](Number x) { return 1 / (std::cosh(x) * std::cosh(x)); }, true, 8},
      {Pointwise{Function::silu}, [](Number x) { return x * logistic(x); },
       [](Number x) { return logistic(x) * (1 + x * logistic(-x)); }, true},
      {Pointwise{Function::gelu}, [](Number x) { return x * normal(x); },
       [](Number x) { return normal(x) + x * std::exp(-x * x / 2) * 0.39894228040143267794L; }, false},
      {Pointwise{Function::gelu_tanh}, [](Number x) { return x * logistic(2 * u(x)); },
       [](Number x) {
         const Number s = logistic(2 * u(x)), rest = logistic(-2 * u(x));
         return s + x * s * rest * 1.5957691216057307118L * (1 + 0.134145L * x * x);
       },
       false},
      {Pointwise{Function::mish}, [](Number x) { return x * t(x); },
       [](Number x) { return t(x) + x * (1 - t(x) * t(x)) * logistic(x); }, false},
      {Pointwise{Function::softplus},
       [](Number x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }, logistic, true},
      {Pointwise{Function::elu, 1, 1}, [](Number x) { return x > 0 ? x : std::expm1(x); },
       [](Number x) { return x > 0 ? 1 : std::exp(x); }, true},
      {Pointwise{Function::exp}, [](Number x) { return std::exp(x); }, [](Number x) { return std::exp(x); }, true}};
  Values x;
  for (const double size : {0x1p-40, 1e-4, 0.01, 0.3, 0.6, 1.0, 3.0, 8.0, 9.5, 12.9, 20.0, 60.0, 80.0})
    for (const double sign : {-1.0, 1.0}) x.push_back(static_cast<float>(sign * size));
  for (const DType dtype : element_types())
    for (const Formula& formula : formulas) {
      const Result got = run(formula.op, x, dtype);
      for (std::size_t i = 0; i < x.size(); ++i) {
        INFO(to_string(formula.op) << " of " << x[i] << " in " << to_string(dtype));
        const auto y = static_cast<double>(formula.y(x[i])), slope = static_cast<double>(formula.slope(x[i]));
        const double size = formula.relative ? std::abs(y) : std::abs(x[i]);
        CHECK(std::abs(got.y[i] - y) <= formula.roundings * epsilon(dtype) * size);
        if (formula.op == Op{Pointwise{Function::tanh}}) CHECK(std::abs(got.y[i]) <= 1);
        CHECK(std::abs(got.dx[0][i] - slope) <= 24 * epsilon(dtype) * std::max(1 + std::abs(x[i]), std::abs(slope)));
      }
    }
}

TEST_CASE("pointwise ops agree with the oracle") {
  for (const auto* all : {&ops, &ops_above_zero})
    for (const Op& op : *all) check_all_against_oracle(pointwise_cases(op));
}

TEST_CASE("clip, leaky relu, the absolute value and a square are exact in whole numbers") {
  for (const Pointwise& op : {Pointwise{Function::clip, -2, 3}, Pointwise{Function::leaky_relu, 2},
                              Pointwise{Function::abs}, Pointwise{Function::pow, 2}})
    check_all_integers(pointwise_cases(op));
}

TEST_CASE("pointwise ops have the gradients of their differences") {
  for (const Op& op : ops)
    for (const Case& c : pointwise_cases(op))
      if (c.mode == Mode::training) check_differences(c);
}

TEST_CASE("functions of positive numbers have the gradients of their differences") {
  for (const Op& op : ops_above_zero) {
    INFO(to_string(op));
    Graph graph("above zero");
    const Value above = pointwise(graph.input({2, 5, 3, 4}), "above", {Function::softplus});
    pointwise(above, "function", std::get<Pointwise>(op));
    check_passed(check_gradients(graph, one_thread(), {.dtype = DType::f64}));
  }
}
