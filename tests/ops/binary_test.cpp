// Functions of two tensors, with and without broadcasting of extents of 1.

#include "tests/support/cases/plans.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

using F = BinaryFunction;

const std::vector<F> binary_functions = {F::add, F::subtract, F::multiply, F::divide, F::maximum, F::minimum};

std::vector<Case> binary_cases(F function) {
  const Binary op{function};
  return {{"equal", op, {{2, 3, 4, 5}, {2, 3, 4, 5}}},
          {"planes", op, {{2, 3, 4, 5}, {2, 3, 1, 1}}},
          {"planes, first", op, {{3, 11, 1, 1}, {3, 11, 1, 2}}},
          {"pixels", op, {{2, 7, 5, 3}, {2, 1, 5, 3}}},
          {"pixels, first", op, {{1, 1, 23, 29}, {1, 3, 23, 29}}},
          {"rows", op, {{2, 5, 4, 3}, {2, 5, 4, 1}}},
          {"rows of all channels", op, {{2, 5, 4, 3}, {2, 1, 4, 1}}},
          {"columns", op, {{2, 5, 1, 6}, {2, 5, 3, 6}}},
          {"channels by pixels", op, {{2, 37, 1, 1}, {2, 1, 3, 2}}},
          {"rows by columns", op, {{2, 3, 5, 1}, {2, 3, 1, 7}}},
          {"one for each image", op, {{2, 3, 2, 5}, {2, 1, 1, 1}}},
          {"vectors", op, {{3, 37, 1, 1}, {3, 1, 1, 1}}},
          {"equal in inference", op, {{2, 3, 4, 5}, {2, 3, 4, 5}}, {}, Mode::inference},
          {"pixels in inference", op, {{2, 3, 4, 4}, {2, 1, 4, 4}}, {}, Mode::inference}};
}

/// Cases with sizes at the edges of blocks and packs.
const Binary product{F::multiply};
const std::vector<Case> long_products = {
    {"vectors", product, {{3, 37, 1, 1}, {3, 37, 1, 1}}},
    {"long", product, {{1, 3, 31, 29}, {1, 3, 31, 29}}},
    {"large planes", product, {{1, 2, 23, 17}, {1, 2, 1, 1}}},
    {"small planes", product, {{3, 11, 1, 2}, {3, 11, 1, 1}}},
    {"planes in inference", product, {{2, 3, 4, 4}, {2, 3, 1, 1}}, {}, Mode::inference},
};

}  // namespace

TEST_CASE("multiply, by hand: each gradient has the other factor") {
  check_example({"", Binary{F::multiply}, {{1, 1, 1, 2}, {1, 1, 1, 2}}}, {{{2, 3}, {10, 20}}, {}, {}, {4, 5}},
                {{20, 60}, {{40, 100}, {8, 15}}});
}

TEST_CASE("multiply, by hand: the gradient of a plane's factor is a sum over the plane") {
  check_example({"", Binary{F::multiply}, {{1, 2, 1, 3}, {1, 2, 1, 1}}},
                {{{1, 2, 3, 4, 5, 6}, {10, -1}}, {}, {}, {1, 1, 2, 3, 1, 0}},
                {{10, 20, 30, -4, -5, -6}, {{10, 10, 20, -3, -1, 0}, {9, 17}}});
}

TEST_CASE("a quotient, by hand: a pixel's divisor is the same for all channels") {
  // y has the channels (8, 4) / (2, 4) and (2, 12) / (2, 4). The gradient of the first divisor is -(8 + 3 * 2) / 4.
  check_example({"", Binary{F::divide}, {{1, 2, 1, 2}, {1, 1, 1, 2}}}, {{{8, 4, 2, 12}, {2, 4}}, {}, {}, {1, 2, 3, 4}},
                {{4, 1, 1, 3}, {{0.5, 0.5, 1.5, 1}, {-3.5, -3.5}}});
}

TEST_CASE("a difference, by hand: rows minus columns") {
  check_example({"", Binary{F::subtract}, {{1, 1, 2, 1}, {1, 1, 1, 3}}},
                {{{10, 20}, {1, 2, 3}}, {}, {}, {1, 2, 3, 4, 5, 6}}, {{9, 8, 7, 19, 18, 17}, {{6, 15}, {-5, -7, -9}}});
}

TEST_CASE("a maximum and a minimum, by hand: equal elements have half of the gradient each") {
  const Feed feed{{{1, 2, 3}, {3, 2, 1}}, {}, {}, {4, 6, 8}};
  const std::vector<Shape> x = {{1, 1, 1, 3}, {1, 1, 1, 3}};
  check_example({"", Binary{F::maximum}, x}, feed, {{3, 2, 3}, {{0, 3, 8}, {4, 3, 0}}});
  check_example({"", Binary{F::minimum}, x}, feed, {{1, 2, 1}, {{4, 3, 0}, {0, 3, 8}}});
}

TEST_CASE("a maximum or minimum with a NaN is NaN, and both inputs get the whole gradient") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const F function : {F::maximum, F::minimum})
    for (const DType dtype : element_types()) {
      const Case c{"", Binary{function}, {{1, 1, 1, 2}, {1, 1, 1, 2}}};
      const Result got = run_case(c, {{{nan, 1}, {1, nan}}, {}, {}, {4, 5}}, {.dtype = dtype});
      for (const double y : got.y) CHECK(std::isnan(y));
      for (const Values& dx : got.dx) CHECK(dx == Values{4, 5});
    }
}

TEST_CASE("a value times itself gets the gradients of both factors") {
  Graph graph("square");
  const Value x = graph.input({1, 2, 1, 3}, "x");
  const Value same = clip(x, "same", -100, 100);  // no input or output, so its gradients may share memory
  multiply(same, same, "square");
  for (const DType dtype : element_types()) {
    Plan plan(graph, backend(), {.dtype = dtype, .input_gradient = true});
    write(plan, plan.input("x"), {1, 2, 3, 4, 5, -6});
    write(plan, plan.output_gradient(), {1, 1, 1, 2, 2, 3});
    run_passes(plan);
    CHECK(read(plan, plan.output()) == Values{1, 4, 9, 16, 25, 36});
    CHECK(read(plan, plan.input_gradient("x")) == Values{2, 4, 6, 16, 20, -36});
  }
}

TEST_CASE("a sum of equal shapes is an Add, and of different shapes a Binary") {
  Graph graph("sums");
  const Value x = graph.input({2, 3, 4, 5}, "x"), row = graph.input({2, 1, 1, 5}, "row");
  add(x, x, "same");
  CHECK(add(row, x, "spread").shape() == x.shape());
  CHECK(std::holds_alternative<Add>(graph.nodes()[2].op));
  CHECK(graph.nodes()[3].op == Op(Binary{F::add}));
}

TEST_CASE("functions of two values agree with the oracle") {
  for (const F function : binary_functions) check_all_against_oracle(binary_cases(function));
  check_all_against_oracle(long_products);
}

TEST_CASE("functions of two values, except quotients, are exact in whole numbers") {
  for (const F function : binary_functions)
    if (function != F::divide) check_all_integers(binary_cases(function));
  check_all_integers(long_products);
}

TEST_CASE("functions of two values, except quotients, have the gradients of finite differences") {
  for (const F function : binary_functions)
    if (function != F::divide) check_all_differences(binary_cases(function));
  check_all_differences(long_products);
}

TEST_CASE("quotients by positive numbers have the gradients of finite differences") {
  for (const Case& c : binary_cases(F::divide)) {
    INFO(to_string(c));
    Graph graph("quotient");
    const Value a = graph.input(c.x[0], "a"), b = graph.input(c.x[1], "b");
    divide(a, pointwise(b, "above", {Function::softplus}), "quotient");
    check_passed(check_gradients(graph, one_thread(), {.dtype = DType::f64}));
  }
}
