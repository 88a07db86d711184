// Softmax and sigmoid cross entropy of logits, and their accuracy.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Case loss_case(const char* name, const Shape& logits, double clip = 0) {
  return {name, SoftmaxCrossEntropy{clip}, {logits, {logits.n, 1, logits.h, logits.w}}};
}

Case case_of(const char* name, const Shape& logits, double clip = 0) {
  return {name, SigmoidCrossEntropy{clip}, {logits, logits}};
}

/// The cases, and the first `count` of them also in inference.
std::vector<Case> with_inference(std::vector<Case> cases, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    cases.push_back(cases[i]);
    cases.back().mode = Mode::inference;
  }
  return cases;
}

const std::vector<Case> softmax_cross_entropy_cases = with_inference(
    {loss_case("vectors", {5, 10, 1, 1}), loss_case("maps", {2, 5, 3, 4}), loss_case("long maps", {2, 3, 9, 15}),
     loss_case("one class", {3, 1, 2, 2}), loss_case("one row", {1, 4, 1, 1}),
     loss_case("many classes", {3, 131, 1, 1}), loss_case("hundreds", {2, 301, 1, 1}),
     loss_case("many rows", {70, 4, 1, 1}), loss_case("clipped", {9, 4, 1, 1}, 0.2),
     loss_case("clipped maps", {2, 4, 3, 5}, 0.2), loss_case("Keras", {6, 5, 1, 1}, 1e-7)},
    2);

const std::vector<Case> sigmoid_cross_entropy_cases = with_inference(
    {case_of("decisions", {9, 1, 1, 1}), case_of("one", {1, 1, 1, 1}), case_of("several labels", {3, 5, 1, 1}),
     case_of("maps", {2, 3, 5, 7}), case_of("many decisions", {70, 1, 1, 1}), case_of("clipped", {12, 1, 1, 1}, 0.3),
     case_of("Keras", {6, 1, 1, 1}, 1e-7)},
    1);

}  // namespace

TEST_CASE("softmax cross entropy, by hand") {
  // The probabilities are 1/4, 3/4 and 1/2, 1/2, so the loss is the mean of ln(4/3) and ln(2). The first of equal
  // logits wins.
  const Case c = loss_case("", {2, 2, 1, 1});
  check_example(c, {{{0, std::log(3.0), 5, 5}, {1, 0}}, {}, {}, {2, 7}},
                {{(std::log(4.0 / 3) + std::log(2.0)) / 2, 1}, {{0.25, -0.25, -0.5, 0.5}}});
  // Here the label is the second of equal logits, which does not win. The accuracy has no gradient.
  const Result other = run_case(c, {{{4, 1, 5, 5}, {0, 1}}, {}, {}, {0, 7}});
  CHECK(other.y[1] == 0.5);
  CHECK(other.dx[0] == Values{0, 0, 0, 0});
}

TEST_CASE("softmax cross entropy, by hand: rows are pixels") {
  const double near = std::log1p(std::exp(-2.0)), far = near + 2, p = 1 / (1 + std::exp(-2.0));
  check_example(loss_case("", {1, 2, 1, 2}), {{{3, 0, 1, 2}, {0, 0}}, {}, {}, {2, 0}},
                {{(near + far) / 2, 0.5}, {{p - 1, -p, 1 - p, p}}});
}

TEST_CASE("softmax cross entropy does not overflow") {
  check_example(loss_case("", {2, 3, 1, 1}), {{{1000, 1000, -1000, -2000, 0, 0}, {2, 0}}, {}, {}, {2, 0}},
                {{2000 + std::log(2.0), 0}, {{0.5, 0.5, -1, -1, 0.5, 0.5}}});
}

TEST_CASE("a row with the label -1 gives no loss, no accuracy and no gradient") {
  const Case c = loss_case("", {3, 2, 1, 1});
  const Result result = run_case(c, {{{0, 0, 9, 1, not_a_number, 7}, {1, -1, -1}}, {}, {}, {4, 0}});
  check_close("y", result.y, {std::log(2.0), 0}, {{1, 1}, 16}, epsilon(DType::f64));
  check_close("dx", result.dx[0], {2, -2, 0, 0, 0, 0}, {{1, 1, 0, 0, 0, 0}, 16}, epsilon(DType::f64));
  const Result none = run_case(c, {{{0, 0, 9, 1, 3, 7}, {-1, -1, -1}}, {}, {}, {4, 0}});
  CHECK(none.y == Values{0, 0});
  CHECK(none.dx[0] == Values(6, 0));
}

TEST_CASE("a clipped probability has the loss of the limit, and no gradient") {
  // The probabilities of the labels are 1/5, 1/2 and 4/5; the limits are 1/4 and 3/4.
  const double ln4 = std::log(4.0);
  const Case c = loss_case("", {3, 2, 1, 1}, 0.25);
  const Result result = run_case(c, {{{ln4, 0, 0, 0, ln4, 0}, {1, 0, 0}}, {}, {}, {3, 0}});
  check_close("y", result.y, {(ln4 + std::log(2.0) + std::log(4.0 / 3)) / 3, 2.0 / 3}, {{1, 1}, 16},
              epsilon(DType::f64));
  check_close("dx", result.dx[0], {0, 0, -0.5, 0.5, 0, 0}, {{0, 0, 1, 1, 0, 0}, 16}, epsilon(DType::f64));
}

TEST_CASE("a label that names no class makes the loss and its row's gradient NaN") {
  for (const double label : {4.0, -2.0, 1.5, 1e30, -1e30, -0.5, not_a_number, std::numeric_limits<double>::infinity()})
    for (const DType dtype : element_types())
      for (const Shape& shape : {Shape{3, 4, 1, 1}, Shape{1, 4, 1, 3}}) {
        INFO("label " << label << " in " << to_string(dtype) << ", logits " << to_string(shape));
        const Case c = loss_case("", shape);
        Feed feed = make_feed(c, 1);
        feed.x[1] = {0, label, 3};
        const Result result = run_case(c, feed, {.dtype = dtype});
        CHECK(std::isnan(result.y[0]));
        CHECK(result.y[1] <= 2.0 / 3 + 1e-6);
        for (std::size_t row = 0; row < 3; ++row)
          for (std::size_t k = 0; k < 4; ++k)
            CHECK(std::isnan(result.dx[0][shape.plane() == 1 ? row * 4 + k : k * 3 + row]) == (row == 1));
      }
}

TEST_CASE("a logit that is NaN makes the loss and its row's gradient NaN") {
  for (const DType dtype : element_types())
    for (const std::size_t place : {0, 1, 2}) {
      const Case c = loss_case("", {2, 3, 1, 1});
      Feed feed{{{1, 2, 3, 4, 5, 6}, {0, 1}}, {}, {}, {2, 0}};
      feed.x[0][3 + place] = not_a_number;
      const Result result = run_case(c, feed, {.dtype = dtype});
      CHECK(std::isnan(result.y[0]));
      CHECK(result.y[1] == 0);
      for (std::size_t i = 0; i < 6; ++i) CHECK(std::isnan(result.dx[0][i]) == (i >= 3));
    }
}

TEST_CASE("softmax cross entropy agrees with the oracle") { check_all_against_oracle(softmax_cross_entropy_cases); }

TEST_CASE("softmax cross entropy has the gradients of finite differences") {
  check_all_differences(softmax_cross_entropy_cases);
}

TEST_CASE("sigmoid cross entropy, by hand") {
  // The probabilities are 3/4, 3/4 and 1/2. A logit of 0 decides for 0.
  const double ln3 = std::log(3.0);
  check_example(case_of("", {3, 1, 1, 1}), {{{ln3, ln3, 0}, {1, 0, 1}}, {}, {}, {6, 9}},
                {{(std::log(4.0 / 3) + std::log(4.0) + std::log(2.0)) / 3, 1.0 / 3}, {{-0.5, 1.5, -1}}});
}

TEST_CASE("sigmoid cross entropy does not overflow") {
  check_example(case_of("", {4, 1, 1, 1}), {{{1000, -1000, 1000, -1000}, {1, 0, 0, 1}}, {}, {}, {4, 0}},
                {{500, 0.5}, {{0, 0, 1, -1}}});
}

TEST_CASE("a decision with the label -1 gives no loss, no accuracy and no gradient") {
  const Case c = case_of("", {3, 1, 1, 1});
  const Result result = run_case(c, {{{0, not_a_number, 2}, {1, -1, -1}}, {}, {}, {4, 0}});
  check_close("y", result.y, {std::log(2.0), 0}, {{1, 1}, 16}, epsilon(DType::f64));
  CHECK(result.dx[0] == Values{-2, 0, 0});
  const Result none = run_case(c, {{{0, 1, 2}, {-1, -1, -1}}, {}, {}, {4, 0}});
  CHECK(none.y == Values{0, 0});
  CHECK(none.dx[0] == Values{0, 0, 0});
}

TEST_CASE("a clipped decision has the loss of the limit, and no gradient") {
  // The probabilities are 1/5, 1/2 and 4/5; the limits are 1/4 and 3/4.
  const double ln4 = std::log(4.0);
  const Case c = case_of("", {3, 1, 1, 1}, 0.25);
  const Result result = run_case(c, {{{-ln4, 0, ln4}, {1, 1, 1}}, {}, {}, {3, 0}});
  check_close("y", result.y, {(ln4 + std::log(2.0) + std::log(4.0 / 3)) / 3, 1.0 / 3}, {{1, 1}, 16},
              epsilon(DType::f64));
  CHECK(result.dx[0] == Values{0, -0.5, 0});
}

TEST_CASE("a label that is neither 0 nor 1 makes the loss and its own gradient NaN") {
  for (const double label : {2.0, -2.0, 0.5, 1e30, -1e30, not_a_number, -std::numeric_limits<double>::infinity()})
    for (const DType dtype : element_types())
      for (const double clip : {0.0, 0.25}) {  // with 0.25 the label's probability is clipped
        INFO("label " << label << " in " << to_string(dtype) << ", clip " << clip);
        const Case c = case_of("", {3, 1, 1, 1}, clip);
        const Result result = run_case(c, {{{1, 2, 3}, {1, label, 1}}, {}, {}, {3, 0}}, {.dtype = dtype});
        CHECK(std::isnan(result.y[0]));
        CHECK(std::abs(result.y[1] - 2.0 / 3) < 1e-6);
        for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(result.dx[0][i]) == (i == 1));
      }
}

TEST_CASE("a logit that is NaN makes the loss and its own gradient NaN") {
  for (const DType dtype : element_types())
    for (const double clip : {0.0, 0.25}) {
      const Case c = case_of("", {3, 1, 1, 1}, clip);
      const Result result = run_case(c, {{{0.5, not_a_number, -0.5}, {1, 0, 0}}, {}, {}, {3, 0}}, {.dtype = dtype});
      CHECK(std::isnan(result.y[0]));
      CHECK(std::abs(result.y[1] - 2.0 / 3) < 1e-6);
      for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(result.dx[0][i]) == (i == 1));
    }
}

TEST_CASE("sigmoid cross entropy agrees with the oracle") { check_all_against_oracle(sigmoid_cross_entropy_cases); }

TEST_CASE("sigmoid cross entropy has the gradients of finite differences") {
  check_all_differences(sigmoid_cross_entropy_cases);
}
