// Products of two tensors, and of a tensor with one factor for each plane.

#include "lamina/op.h"
#include "lamina/plan.h"
#include "tests/support/backend.h"
#include "tests/support/cases/example.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case>& multiply_cases() {
  static const std::vector<Case> all = {
      {"equal", Multiply{}, {{2, 3, 4, 5}, {2, 3, 4, 5}}},
      {"vectors", Multiply{}, {{3, 37, 1, 1}, {3, 37, 1, 1}}},
      {"long", Multiply{}, {{1, 3, 31, 29}, {1, 3, 31, 29}}},
      {"planes", Multiply{}, {{2, 3, 4, 5}, {2, 3, 1, 1}}},
      {"large planes", Multiply{}, {{1, 2, 23, 17}, {1, 2, 1, 1}}},
      {"small planes", Multiply{}, {{3, 11, 1, 2}, {3, 11, 1, 1}}},
      {"equal in inference", Multiply{}, {{2, 3, 4, 5}, {2, 3, 4, 5}}, {}, Mode::inference},
      {"planes in inference", Multiply{}, {{2, 3, 4, 4}, {2, 3, 1, 1}}, {}, Mode::inference},
  };
  return all;
}

}  // namespace

TEST_CASE("multiply, by hand: each gradient has the other factor") {
  check_example({"", Multiply{}, {{1, 1, 1, 2}, {1, 1, 1, 2}}}, {{{2, 3}, {10, 20}}, {}, {}, {4, 5}, {}, {}},
                {{20, 60}, {{40, 100}, {8, 15}}, {}, {}});
}

TEST_CASE("multiply, by hand: the gradient of a plane's factor is a sum over the plane") {
  check_example({"", Multiply{}, {{1, 2, 1, 3}, {1, 2, 1, 1}}},
                {{{1, 2, 3, 4, 5, 6}, {10, -1}}, {}, {}, {1, 1, 2, 3, 1, 0}, {}, {}},
                {{10, 20, 30, -4, -5, -6}, {{10, 10, 20, -3, -1, 0}, {9, 17}}, {}, {}});
}

TEST_CASE("a value times itself has twice its gradient") {
  Graph graph("square");
  const Value x = graph.input({1, 2, 1, 3}, "x");
  const Value same = clip(x, "same", -100, 100);  // a value inside: gradients may share memory
  multiply(same, same, "square");
  for (const DType dtype : element_types()) {
    Plan plan(graph, backend(), {.dtype = dtype, .input_gradient = true});
    upload(backend().device(), plan.input("x"), std::span<const double>(Values{1, 2, 3, 4, 5, -6}));
    upload(backend().device(), plan.output_gradient(), std::span<const double>(Values{1, 1, 1, 2, 2, 3}));
    plan.forward();
    plan.backward();
    CHECK(read(backend().device(), plan.output()) == Values{1, 4, 9, 16, 25, 36});
    CHECK(read(backend().device(), plan.input_gradient("x")) == Values{2, 4, 6, 16, 20, -36});
  }
}

TEST_CASE("multiply agrees with the oracle") { check_all_against_oracle(multiply_cases()); }

TEST_CASE("multiply is exact in whole numbers") { check_all_integers(multiply_cases()); }

TEST_CASE("multiply has the gradients of finite differences") { check_all_differences(multiply_cases()); }
