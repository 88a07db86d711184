// The sampled reference, compared with eigen in f64. Other tests check eigen itself, by hand examples and by
// differences.

#include "bench/numbers/reference.h"

#include <cmath>
#include <limits>
#include <set>

#include "tests/support/backend.h"
#include "tests/support/cases/unit.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;

namespace {

/// Numbers without a pattern.
std::vector<double> numbers(std::int64_t count, double seed) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(std::sin(seed + 1.7 * static_cast<double>(i)));
  return values;
}

void check_against_oracle(const Op& op, const Shape& x) {
  const test::Case c{"", op, {x}};
  const Inferred inferred = infer(op, {x});
  test::Feed feed;
  feed.x = {numbers(x.count(), 1)};
  for (const Shape& w : inferred.params) feed.w.push_back(numbers(w.count(), 2));
  feed.dy = numbers(inferred.y.count(), 3);
  const Spec spec = *test::make_spec(test::oracle(), c, {});
  const test::Result want = test::run_unit(test::oracle(), spec, test::direct(), feed);
  const Operands operands{feed.x[0], feed.w[0], feed.w.size() > 1 ? feed.w[1] : std::vector<double>{}, feed.dy};

  const auto check = [&](Pass pass, const std::vector<double>& result) {
    const Reference reference = make_reference(op, x, pass, operands);
    CAPTURE(to_string(op), to_string(pass));
    REQUIRE(reference.elements.size() == result.size());  // the result is so small that every element is sampled
    CHECK(compare(reference, result).of_terms < 1e-14);
    CHECK(compare(reference, result).of_largest < 1e-14);
    for (std::size_t i = 0; i < result.size(); ++i) REQUIRE(std::abs(reference.exact[i]) <= reference.terms[i]);
  };
  check(Pass::forward, want.y);
  check(Pass::backward_data, want.dx[0]);
  check(Pass::backward_params, want.dw[0]);
}

Reference large_reference() {
  const Conv op{.channels = 8, .kernel = 3, .pad = 1};
  const Shape x{4, 4, 40, 30};
  const Operands operands{numbers(x.count(), 1), numbers(8 * 4 * 9, 2), numbers(8, 3), {}};
  return make_reference(op, x, Pass::forward, operands);
}

}  // namespace

TEST_CASE("a reference is what eigen computes in f64, for every kind of convolution") {
  check_against_oracle(Conv{.channels = 4, .kernel = 3}, {2, 3, 6, 7});
  check_against_oracle(Conv{.channels = 6, .kernel = {3, 2}, .stride = {2, 3}, .pad = {1, 0}, .groups = 2},
                       {2, 4, 8, 9});
  check_against_oracle(Conv{.channels = 3, .kernel = {2, 3}, .stride = 2, .pad = 2, .dilation = {2, 3}, .bias = false},
                       {1, 2, 9, 11});
  check_against_oracle(FullyConnected{.outputs = 5}, {3, 2, 4, 3});
  CHECK(has_reference(Conv{.channels = 1, .kernel = 1}));
  CHECK_FALSE(has_reference(MaxPool{.window = 2, .stride = 2}));
}

TEST_CASE("of a large result, the corners and some further elements are sampled, the same ones every time") {
  const Reference reference = large_reference();
  const std::int64_t count = std::int64_t{4} * 8 * 40 * 30;
  CHECK(reference.elements.size() == 4096);
  const std::set<std::int64_t> chosen(reference.elements.begin(), reference.elements.end());
  CHECK(chosen.size() == reference.elements.size());
  CHECK(*chosen.rbegin() < count);
  for (const std::int64_t corner :
       {std::int64_t{0}, std::int64_t{29}, std::int64_t{39 * 30}, std::int64_t{39 * 30 + 29}, count - 1200, count - 1})
    CHECK(chosen.contains(corner));
  CHECK(large_reference().elements == reference.elements);
  CHECK(large_reference().exact == reference.exact);
}

TEST_CASE("a sample has fewer elements if each element takes many products, but at least 256") {
  const Conv op{.channels = 8, .kernel = 3, .pad = 1, .bias = false};
  const Shape x{2, 8, 600, 600};  // 720000 products for each element of the weight gradient
  const Operands operands{numbers(x.count(), 1), {}, {}, numbers(x.count(), 2)};
  CHECK(make_reference(op, x, Pass::backward_params, operands).elements.size() == 256);
}

TEST_CASE("an error is the largest error of all elements, relative to the element's terms and to the largest number") {
  Reference reference;
  reference.elements = {0, 1, 2};
  reference.exact = {1, -4, 0};
  reference.terms = {2, 4, 1};
  CHECK(compare(reference, {1, -4, 0}).of_terms == 0);
  CHECK(compare(reference, {1, -4, 0}).elements == 3);
  const ErrorFound found = compare(reference, {1.25, -4.25, 0.25});
  CHECK(found.of_terms == Approx(0.25));
  CHECK(found.of_largest == Approx(0.25 / 4));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isinf(compare(reference, {1, nan, 0}).of_terms));
  CHECK(std::isinf(compare(reference, {1, nan, 0}).of_largest));
  CHECK(std::isinf(compare(reference, {nan, -4, 0.5}).of_largest));
  reference.terms[2] = 0;
  CHECK(std::isinf(compare(reference, {1, -4, 1e-30}).of_terms));
}
