// ReLU.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case> relu_cases = {
    {"map", Relu{}, {{2, 3, 4, 5}}},
    {"vector", Relu{}, {{3, 37, 1, 1}}},
    {"one number", Relu{}, {{1, 1, 1, 1}}},
    {"long", Relu{}, {{1, 5, 31, 29}}},
    {"inference", Relu{}, {{2, 3, 3, 7}}, {}, Mode::inference},
};

}  // namespace

TEST_CASE("relu, by hand: the gradient at 0 is 0") {
  check_example({"", Relu{}, {{1, 1, 1, 4}}}, {{{-2, 0, 3, -0.0}}, {}, {}, {5, 6, 7, 8}},
                {{0, 0, 3, 0}, {{0, 0, 7, 0}}});
}

TEST_CASE("relu of a NaN is NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Case c{"", Relu{}, {{1, 1, 1, 19}}};
  Feed feed = make_feed(c, 1);
  feed.x[0][3] = feed.x[0][17] = nan;
  for (const DType dtype : element_types()) {
    const Values y = run_case(c, feed, {.dtype = dtype}).y;
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i == 3 || i == 17));
  }
}

TEST_CASE("relu agrees with the oracle") { check_all_against_oracle(relu_cases); }

TEST_CASE("relu has the gradients of finite differences") { check_all_differences(relu_cases); }
