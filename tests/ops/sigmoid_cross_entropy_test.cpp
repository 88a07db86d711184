// The loss of a sigmoid, from logits, and its accuracy.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Case case_of(const char* name, const Shape& logits, double clip = 0) {
  return {name, SigmoidCrossEntropy{clip}, {logits, logits}};
}

const std::vector<Case> sigmoid_cross_entropy_cases = [] {
  std::vector<Case> some = {
      case_of("decisions", {9, 1, 1, 1}),       case_of("one", {1, 1, 1, 1}),
      case_of("several labels", {3, 5, 1, 1}),  case_of("maps", {2, 3, 5, 7}),
      case_of("many decisions", {70, 1, 1, 1}), case_of("clipped", {12, 1, 1, 1}, 0.3),
      case_of("Keras", {6, 1, 1, 1}, 1e-7),
  };
  some.push_back(some[0]);
  some.back().mode = Mode::inference;
  return some;
}();

}  // namespace

TEST_CASE("sigmoid cross entropy, by hand") {
  // The probabilities are 3/4, 3/4 and 1/2. A logit of 0 decides for 0.
  const double ln3 = std::log(3.0);
  const Case c = case_of("", {3, 1, 1, 1});
  const Result result = run_case(c, {{{ln3, ln3, 0}, {1, 0, 1}}, {}, {}, {6, 9}, {}, {}});
  check_close("y", result.y, {(std::log(4.0 / 3) + std::log(4.0) + std::log(2.0)) / 3, 1.0 / 3}, {{1, 1}, 16},
              epsilon(DType::f64));
  check_close("dx", result.dx[0], {-0.5, 1.5, -1}, {{1, 1, 1}, 16}, epsilon(DType::f64));
  CHECK(result.dx[1].empty());
}

TEST_CASE("sigmoid cross entropy does not overflow") {
  check_example(case_of("", {4, 1, 1, 1}), {{{1000, -1000, 1000, -1000}, {1, 0, 0, 1}}, {}, {}, {4, 0}, {}, {}},
                {{500, 0.5}, {{0, 0, 1, -1}, {}}, {}, {}});
}

TEST_CASE("a decision with the label -1 gives no loss, no accuracy and no gradient") {
  const Case c = case_of("", {3, 1, 1, 1});
  const Result result = run_case(c, {{{0, not_a_number, 2}, {1, -1, -1}}, {}, {}, {4, 0}, {}, {}});
  check_close("y", result.y, {std::log(2.0), 0}, {{1, 1}, 16}, epsilon(DType::f64));
  CHECK(result.dx[0] == Values{-2, 0, 0});
  const Result none = run_case(c, {{{0, 1, 2}, {-1, -1, -1}}, {}, {}, {4, 0}, {}, {}});
  CHECK(none.y == Values{0, 0});
  CHECK(none.dx[0] == Values{0, 0, 0});
}

TEST_CASE("a clipped decision has the loss of the limit and no gradient") {
  // The probabilities are 1/5, 1/2 and 4/5; the limits are 1/4 and 3/4.
  const double ln4 = std::log(4.0);
  const Case c = case_of("", {3, 1, 1, 1}, 0.25);
  const Result result = run_case(c, {{{-ln4, 0, ln4}, {1, 1, 1}}, {}, {}, {3, 0}, {}, {}});
  check_close("y", result.y, {(ln4 + std::log(2.0) + std::log(4.0 / 3)) / 3, 1.0 / 3}, {{1, 1}, 16},
              epsilon(DType::f64));
  CHECK(result.dx[0] == Values{0, -0.5, 0});
}

TEST_CASE("a label that is neither 0 nor 1 makes the loss and its own gradient NaN") {
  for (const double label : {2.0, -2.0, 0.5, 1e30, -1e30, not_a_number, -std::numeric_limits<double>::infinity()})
    for (const DType dtype : element_types()) {
      INFO("label " << label << " in " << to_string(dtype));
      const Result result =
          run_case(case_of("", {3, 1, 1, 1}), {{{1, 2, 3}, {1, label, 1}}, {}, {}, {3, 0}, {}, {}}, {.dtype = dtype});
      CHECK(std::isnan(result.y[0]));
      CHECK(std::abs(result.y[1] - 2.0 / 3) < 1e-6);
      for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(result.dx[0][i]) == (i == 1));
    }
}

TEST_CASE("a logit that is NaN makes the loss and its own gradient NaN") {
  for (const DType dtype : element_types())
    for (const double clip : {0.0, 0.25}) {
      const Case c = case_of("", {3, 1, 1, 1}, clip);
      const Result result =
          run_case(c, {{{0.5, not_a_number, -0.5}, {1, 0, 0}}, {}, {}, {3, 0}, {}, {}}, {.dtype = dtype});
      CHECK(std::isnan(result.y[0]));
      CHECK(std::abs(result.y[1] - 2.0 / 3) < 1e-6);
      for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(result.dx[0][i]) == (i == 1));
    }
}

TEST_CASE("sigmoid cross entropy agrees with the oracle") { check_all_against_oracle(sigmoid_cross_entropy_cases); }

TEST_CASE("sigmoid cross entropy has the gradients of finite differences") {
  check_all_differences(sigmoid_cross_entropy_cases);
}
