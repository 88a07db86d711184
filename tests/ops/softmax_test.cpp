// Softmax along an axis, and its logarithm.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case> softmax_cases = [] {
  std::vector<Case> cases = {
      {"vector", Softmax{}, {{3, 10, 1, 1}}},
      {"vector of many cells", Softmax{}, {{2, 1100, 1, 1}}},
      {"map", Softmax{}, {{2, 5, 3, 4}}},
      {"map of several strips", Softmax{}, {{2, 3, 17, 19}}},
      {"two classes", Softmax{}, {{4, 2, 1, 1}}},
      {"one class", Softmax{}, {{2, 1, 2, 2}}},
      {"many classes", Softmax{}, {{2, 131, 1, 1}}},
      {"inference", Softmax{}, {{2, 7, 2, 1}}, {}, Mode::inference},
      {"rows", Softmax{.axis = Axis::row}, {{2, 3, 5, 7}}},
      {"rows of a sequence", Softmax{.axis = Axis::row}, {{2, 3, 67, 1}}},
      {"columns", Softmax{.axis = Axis::column}, {{2, 3, 5, 7}}},
      {"long columns", Softmax{.axis = Axis::column}, {{2, 2, 3, 131}}},
  };
  for (std::size_t i = 0, count = cases.size(); i < count; ++i) {
    cases.push_back(cases[i]);
    std::get<Softmax>(cases.back().op).log = true;
  }
  return cases;
}();

}  // namespace

TEST_CASE("softmax, by hand") {
  // e^0 and e^ln(3) give the probabilities 1/4 and 3/4. dx = y (dy - sum(y dy)), and sum(y dy) is 1.
  check_example({"", Softmax{}, {{1, 2, 1, 1}}}, {{{0, std::log(3.0)}}, {}, {}, {4, 0}},
                {{0.25, 0.75}, {{0.75, -0.75}}});
  check_example({"", Softmax{}, {{1, 4, 1, 1}}}, {{{7, 7, 7, 7}}, {}, {}, {4, 0, 0, 8}},
                {{0.25, 0.25, 0.25, 0.25}, {{0.25, -0.75, -0.75, 1.25}}});
}

TEST_CASE("softmax, by hand: over channels, not over pixels") {
  const double a = 1 / (1 + std::exp(2.0)), b = 1 / (1 + std::exp(-4.0));
  check_example({"", Softmax{}, {{1, 2, 1, 2}}}, {{{1, 4, 3, 0}}}, {{a, b, 1 - a, 1 - b}});
}

TEST_CASE("softmax, by hand: along rows and along columns") {
  const double a = 1 / (1 + std::exp(2.0)), b = 1 / (1 + std::exp(-4.0)), c = 1 / (1 + std::exp(3.0));
  check_example({"", Softmax{.axis = Axis::row}, {{1, 1, 2, 2}}}, {{{1, 4, 3, 0}}}, {{a, b, 1 - a, 1 - b}});
  check_example({"", Softmax{.axis = Axis::column}, {{1, 2, 1, 2}}}, {{{1, 4, 3, 0}}}, {{c, 1 - c, 1 - c, c}});
}

TEST_CASE("log softmax, by hand, does not overflow") {
  // y = x - max - log(sum of exp(x - max)), and this sum is 2. dx = dy - exp(y) sum(dy), and sum(dy) is 4.
  const Case c{"", Softmax{.log = true}, {{1, 3, 1, 1}}};
  const double half = std::log(0.5);
  check_example(c, {{{1000, 1000, -1000}}, {}, {}, {1, 0, 3}}, {{half, half, -2000 + half}, {{-1, -2, 3}}});
}

TEST_CASE("softmax does not overflow") {
  const Case c{"", Softmax{}, {{1, 3, 1, 1}}};
  check_example(c, {{{1000, 1000, -1000}}, {}, {}, {1, 0, 0}}, {{0.5, 0.5, 0}, {{0.25, -0.25, 0}}});
}

TEST_CASE("softmax agrees with the oracle") { check_all_against_oracle(softmax_cases); }

TEST_CASE("softmax has the gradients of finite differences") { check_all_differences(softmax_cases); }
