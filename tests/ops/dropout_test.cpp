// Dropout: its properties, and the mask that its documentation defines.

#include "lamina/random.h"
#include "tests/support/cases/plans.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

Result drop(double rate, std::uint64_t dropout_seed, const Shape& shape, double step, DType dtype = DType::f32) {
  const Case c{"", Dropout{.rate = rate, .seed = dropout_seed}, {shape}};
  const auto count = static_cast<std::size_t>(shape.count());
  return run_case(c, {{Values(count, 1)}, {}, {{step}}, Values(count, 2)}, {.dtype = dtype});
}

}  // namespace

TEST_CASE("dropout and its gradient follow the documented counter") {
  const Shape shape{3, 5, 7, 3};
  for (const DType dtype : element_types())
    for (const double rate : {0.0, 0.375, 0.75})
      for (const std::uint64_t step : {0U, 1U, 77U}) {
        const std::uint64_t key = 0x1234567890ABCDEFU;
        const Result result = drop(rate, key, shape, static_cast<double>(step), dtype);
        for (std::size_t i = 0; i < result.y.size(); ++i) {
          const bool dropped = philox(key, i / 4, step)[i % 4] < rate * 0x1p32;
          CHECK(result.y[i] == Approx(dropped ? 0 : 1 / (1 - rate)).epsilon(1e-6));
          CHECK(result.dx[0][i] == 2 * result.y[i]);
        }
      }
}

TEST_CASE("dropout drops about the requested share of elements") {
  // Each of n independent elements is dropped with probability p. A deviation of six standard deviations occurs once in
  // 5e8.
  const Shape shape{1, 16, 32, 32};
  const auto n = static_cast<double>(shape.count());
  for (const double rate : {0.1, 0.5, 0.9}) {
    const Values y = drop(rate, seed(), shape, 0).y;
    CHECK(std::abs(static_cast<double>(std::ranges::count(y, 0)) - n * rate) < 6 * std::sqrt(n * rate * (1 - rate)));
  }
}

TEST_CASE("dropout has another mask in another step, and the same mask in the same step") {
  const Shape shape{2, 4, 6, 6};
  const Result first = drop(0.5, 9, shape, 0), again = drop(0.5, 9, shape, 0), next = drop(0.5, 9, shape, 1);
  CHECK(first.y == again.y);
  CHECK(first.y != next.y);
  CHECK(first.state[0][0] == 1);
  CHECK(next.state[0][0] == 2);
  CHECK(drop(0.5, 10, shape, 0).y != first.y);
}

TEST_CASE("dropout changes nothing in inference") {
  const Case c{"", Dropout{}, {{2, 3, 2, 2}}, {}, Mode::inference};
  Feed feed = make_feed(c, 1);
  for (const DType dtype : element_types()) {
    const Result result = run_case(c, feed, {.dtype = dtype});
    CHECK(result.y == feed.x[0]);
    CHECK(result.state[0] == feed.state[0]);
  }
}

TEST_CASE("dropout agrees with the oracle") {
  CHECK(check_against_oracle({"half", Dropout{.rate = 0.5, .seed = 7}, {{2, 3, 5, 3}}}));
  CHECK(check_against_oracle({"a little", Dropout{.rate = 0.1, .seed = 8}, {{3, 37, 1, 1}}}));
  CHECK(check_against_oracle({"inference", Dropout{.rate = 0.1}, {{3, 7, 2, 1}}, {}, Mode::inference}));
}

TEST_CASE("dropout has the gradients of finite differences") {
  check_differences({"half", Dropout{.rate = 0.5, .seed = 7}, {{2, 3, 4, 3}}});
  check_differences({"most", Dropout{.rate = 0.9, .seed = 7}, {{2, 3, 4, 3}}});
}

TEST_CASE("dropout in a plan advances its step, goes on from a written step, and its mask depends on its name") {
  const Shape shape{2, 3, 6, 6};
  Graph graph("drops");
  Value x = graph.input(shape);
  add(dropout(x, "one", {.rate = 0.5}), dropout(x, "two", {.rate = 0.5}));
  Plan plan(graph, backend(), {.dtype = DType::f64, .fuse = false, .keep_values = true});
  Device& device = backend().device();
  CHECK(read_state(plan, "one.step") == Values{0});
  plan.forward();
  const Values first = read(plan, plan.value("one"));
  CHECK(read_state(plan, "one.step") == Values{1});
  CHECK(first != read(plan, plan.value("two")));
  plan.forward();
  CHECK(read_state(plan, "one.step") == Values{2});
  CHECK(first != read(plan, plan.value("one")));
  const std::uint64_t zero = 0;
  device.upload(plan.state("one.step").data, &zero, sizeof zero);
  plan.forward();
  CHECK(first == read(plan, plan.value("one")));

  const Values values = read(plan, plan.input());
  for (std::size_t i = 0; i < first.size(); ++i) {
    const bool dropped = philox(hash("one"), i / 4, 0)[i % 4] < 0x80000000U;
    CHECK(first[i] == (dropped ? 0 : 2 * values[i]));
  }
}
