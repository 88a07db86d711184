// Batch normalisation, alone and fused with the ops after it.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case> batch_norm_cases = {
    {"usual", BatchNorm{}, {{4, 3, 5, 6}}},
    {"one image", BatchNorm{}, {{1, 5, 4, 7}}},
    {"vectors", BatchNorm{}, {{9, 6, 1, 1}}},
    {"three values a channel", BatchNorm{}, {{3, 4, 1, 1}}},
    {"large epsilon, quick momentum", BatchNorm{.epsilon = 0.5, .momentum = 0.75}, {{3, 2, 3, 3}}},
    {"many channels", BatchNorm{}, {{2, 33, 3, 2}}},
    {"one channel", BatchNorm{}, {{3, 1, 7, 5}}},
    {"long channels", BatchNorm{}, {{3, 2, 31, 33}}},
    {"long channels of even planes", BatchNorm{}, {{2, 3, 36, 32}}},
    {"inference", BatchNorm{}, {{2, 3, 4, 5}}, {}, Mode::inference},
    {"inference, vectors", BatchNorm{.epsilon = 1e-3}, {{3, 7, 1, 1}}, {}, Mode::inference},
};

const std::vector<Case> chains = {
    {"ReLU", BatchNorm{}, {{3, 4, 3, 5}}, {{Relu{}}}},
    {"add", BatchNorm{}, {{3, 4, 3, 5}}, {{Add{}}}},
    {"add, as second", BatchNorm{}, {{2, 4, 3, 5}}, {{Add{}, 1}}},
    {"add, ReLU", BatchNorm{}, {{3, 4, 3, 5}}, {{Add{}}, {Relu{}}}},
    {"add as second, ReLU", BatchNorm{}, {{2, 3, 4, 3}}, {{Add{}, 1}, {Relu{}}}},
    {"ReLU, inference", BatchNorm{}, {{2, 3, 3, 4}}, {{Relu{}}}, Mode::inference},
    {"add, ReLU, inference", BatchNorm{}, {{2, 3, 3, 4}}, {{Add{}}, {Relu{}}}, Mode::inference},
};

}  // namespace

TEST_CASE("batch norm, by hand") {
  // The mean is 5. The variance 9 plus epsilon 7 gives a standard deviation of 4. The normalised values are -0.75 and
  // 0.75.
  const Case c{"", BatchNorm{.epsilon = 7, .momentum = 0.25}, {{2, 1, 1, 1}}};
  const double xhat = 0.75, scale = 2, dy0 = 3, dy1 = 1;
  // dx = scale / 4 * (dy - mean(dy) - x-hat * mean(dy * x-hat))
  const double mean_dy = 2, mean_product = (dy0 * -xhat + dy1 * xhat) / 2;
  check_example(
      c, {{{2, 8}}, {{scale}, {1}}, {{4}, {2}}, {dy0, dy1}},
      {{1 - 2 * xhat, 1 + 2 * xhat},
       {{scale / 4 * (dy0 - mean_dy + xhat * mean_product), scale / 4 * (dy1 - mean_dy - xhat * mean_product)}},
       {{xhat * (dy1 - dy0)}, {4}},
       // The running variance uses the unbiased variance: 18 for two values, not 9.
       {{0.75 * 4 + 0.25 * 5}, {0.75 * 2 + 0.25 * 18}}});
}

TEST_CASE("batch norm, by hand: inference uses the running statistics and does not change them") {
  const Case c{"", BatchNorm{.epsilon = 7}, {{1, 2, 1, 1}}, {}, Mode::inference};
  check_example(c, {{{3, 10}}, {{2, 3}, {1, -1}}, {{1, 4}, {9, 29}}},
                {{2 * (3 - 1) / 4.0 + 1, 3 * (10 - 4) / 6.0 - 1}, {}, {}, {{1, 4}, {9, 29}}});
}

TEST_CASE("batch norm agrees with the oracle") { check_all_against_oracle(batch_norm_cases); }

TEST_CASE("batch norm has the gradients of finite differences") { check_all_differences(batch_norm_cases); }

TEST_CASE("batch norm with fused ops as one unit agrees with the single ops") {
  for (const Case& c : chains) check_against_oracle(c);
}

TEST_CASE("batch norm with fused ops has the gradients of finite differences") { check_all_differences(chains); }

TEST_CASE("eigen fuses batch norm, add and ReLU") {
  for (const Case& c : chains) {
    INFO(to_string(c));
    CHECK(make_spec(oracle(), c, {}).has_value());
  }
}

TEST_CASE("batch norm of one value per channel is refused when a plan is made") {
  Graph graph("single");
  batch_norm(graph.input({1, 3, 1, 1}), "bn");
  CHECK_THROWS_MATCHES(Plan(graph, backend()), ShapeError, Says("bn"));
  CHECK_NOTHROW(Plan(graph, backend(), {.mode = Mode::inference}));
}

TEST_CASE("statistics over several ranks are summed between two calls on eigen, and refused on other backends") {
  Graph graph("ranks");
  batch_norm(graph.input({2, 3, 2, 2}), "bn");
  Options options{.input_gradient = true, .sync_batch_norm_ranks = 2};
  if (backend().name() != "eigen") {
    CHECK_THROWS_WITH(Plan(graph, backend(), options), ContainsSubstring("batch_norm(over 2 ranks)"));
    return;
  }
  Plan plan(graph, backend(), options);
  REQUIRE(plan.calls().size() == 4);
  for (const std::size_t call : {0, 1, 2, 3}) CHECK(plan.calls()[call].cross_rank_sums == (call % 2 == 0 ? 6 : 0));
  CHECK_THROWS_AS(plan.forward(), UsageError);  // no function that sums over ranks is given
  plan.forward([](std::size_t) {});
  CHECK_THROWS_WITH(plan.backward(), ContainsSubstring("node bn needs sums over the ranks"));
  plan.backward([](std::size_t) {});
  for (const int ranks : {0, -1}) {
    options.sync_batch_norm_ranks = ranks;
    CHECK_THROWS_AS(Plan(graph, backend(), options), UsageError);
  }
}
