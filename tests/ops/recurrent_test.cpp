// LSTM and GRU: by hand, by definition, compared with the oracle, and by differences.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"
#include "tests/support/numbers/recurrent_bounds.h"

using namespace lamina::test;

namespace {

constexpr Steps last = Steps::last;
constexpr Gates hard = Gates::hard_sigmoid;
constexpr Cell gru_cell = Cell::gru;

/// Cases with widths below, at and above the vector lengths of every instruction set, with images for one thread and
/// for several, and with more steps than the 16 that are reordered at once.
const std::vector<Case> recurrent_cases = {
    {"one of everything", Recurrent{.hidden = 1}, {{1, 1, 1, 1}}},
    {"small", Recurrent{.hidden = 3}, {{2, 4, 5, 1}}},
    {"in reverse", Recurrent{.hidden = 3, .reverse = true}, {{2, 4, 5, 1}}},
    {"the last step", Recurrent{.hidden = 5, .steps = last}, {{3, 2, 4, 1}}},
    {"the last step in reverse", Recurrent{.hidden = 5, .steps = last, .reverse = true}, {{3, 2, 4, 1}}},
    {"hard gates", Recurrent{.hidden = 4, .gates = hard}, {{2, 3, 6, 1}}},
    {"hard, last, reverse", Recurrent{.hidden = 4, .steps = last, .gates = hard, .reverse = true}, {{2, 3, 5, 1}}},
    {"whole vectors", Recurrent{.hidden = 16}, {{9, 16, 3, 1}}},
    {"more than a vector", Recurrent{.hidden = 19}, {{11, 21, 4, 1}}},
    {"many steps", Recurrent{.hidden = 2, .reverse = true}, {{2, 3, 35, 1}}},
    {"ids", Recurrent{.hidden = 4, .vocabulary = 7}, {{3, 1, 6, 1}}},
    {"ids, last, reverse", Recurrent{.hidden = 17, .steps = last, .reverse = true, .vocabulary = 5}, {{6, 1, 4, 1}}},
    {"inference", Recurrent{.hidden = 6, .reverse = true}, {{5, 3, 18, 1}}, {}, Mode::inference},
    {"ids, last", Recurrent{.hidden = 5, .steps = last, .vocabulary = 9}, {{2, 1, 3, 1}}, {}, Mode::inference},
    {"GRU, one of everything", Recurrent{.hidden = 1, .cell = gru_cell}, {{1, 1, 1, 1}}},
    {"GRU", Recurrent{.hidden = 3, .cell = gru_cell}, {{2, 4, 5, 1}}},
    {"GRU, last, reverse", Recurrent{.hidden = 5, .cell = gru_cell, .steps = last, .reverse = true}, {{3, 2, 4, 1}}},
    {"GRU, hard gates", Recurrent{.hidden = 4, .cell = gru_cell, .gates = hard}, {{2, 3, 6, 1}}},
    {"GRU, whole vectors", Recurrent{.hidden = 16, .cell = gru_cell}, {{9, 16, 3, 1}}},
    {"GRU, more than a vector", Recurrent{.hidden = 19, .cell = gru_cell}, {{11, 21, 4, 1}}},
    {"GRU, many steps", Recurrent{.hidden = 2, .cell = gru_cell, .reverse = true}, {{2, 3, 35, 1}}},
    {"GRU of ids", Recurrent{.hidden = 4, .cell = gru_cell, .vocabulary = 7}, {{3, 1, 6, 1}}},
    {"GRU, inference", Recurrent{.hidden = 6, .cell = gru_cell, .reverse = true}, {{5, 3, 18, 1}}, {}, Mode::inference},
};

/// These cases and larger cases, which would take too long by differences: several images per block, weights beyond the
/// block's registers, hidden values beyond one block, more ids than threads of a block.
std::vector<Case> large_cases() {
  std::vector<Case> all = recurrent_cases;
  all.push_back({"two images for a block", Recurrent{.hidden = 3}, {{135, 2, 3, 1}}});
  all.push_back({"four images for a block", Recurrent{.hidden = 5, .steps = last, .reverse = true}, {{270, 1, 3, 1}}});
  all.push_back({"70 hidden values", Recurrent{.hidden = 70}, {{2, 3, 3, 1}}});
  all.push_back({"130 hidden values", Recurrent{.hidden = 130, .reverse = true}, {{2, 2, 3, 1}}});
  all.push_back({"GRU of 70 hidden values", Recurrent{.hidden = 70, .cell = gru_cell}, {{2, 3, 3, 1}}});
  all.push_back({"180 ids", Recurrent{.hidden = 3, .vocabulary = 4}, {{30, 1, 6, 1}}});
  return all;
}

}  // namespace

TEST_CASE("an LSTM whose gates are open sums its inputs, by hand") {
  // A hard gate is 1 from 2.5 on, so i = f = o = 1, c[t] = c[t - 1] + tanh(x[t]) and h = tanh(c). Here tanh(x) = 1/2,
  // 1/4, so c = 1/2, 3/4. With dy only at the last step, dc = 1 - h^2 and dx[t] = dc (1 - tanh(x[t])^2).
  const Case c{"", Recurrent{.hidden = 1, .steps = last, .gates = hard}, {{1, 1, 2, 1}}};
  const double h = std::tanh(0.75), dc = 1 - h * h;
  Feed feed{{{std::atanh(0.5), std::atanh(0.25)}}, {{0, 0, 1, 0}, {0, 0, 0, 0}, {10, 10, 0, 10}}, {}, {1}};
  check_example(c, feed, {{h}, {{dc * 0.75, dc * 0.9375}}});
  const Case whole{"", Recurrent{.hidden = 1, .gates = hard, .reverse = true}, {{1, 1, 2, 1}}};
  feed.dy = {0, 0};
  check_example(whole, feed, {{h, std::tanh(0.25)}});
}

TEST_CASE("an LSTM's recurrent weights multiply h of the previous step, by hand") {
  // x is 0. In step 1, i = f = o = 1/2 and g = tanh(2), so c1 = g / 2 and h1 = tanh(c1) / 2. In step 2, g = tanh(2 + 3
  // h1), so c2 = c1 / 2 + tanh(2 + 3 h1) / 2.
  const double c1 = std::tanh(2.0) / 2, h1 = std::tanh(c1) / 2, c2 = c1 / 2 + std::tanh(2 + 3 * h1) / 2;
  const Feed feed{{{0, 0}}, {{5, 6, 7, 8}, {0, 0, 3, 0}, {0, 0, 2, 0}}, {}, {0, 0}};
  check_example({"", Recurrent{.hidden = 1}, {{1, 1, 2, 1}}}, feed, {{h1, std::tanh(c2) / 2}});
}

TEST_CASE("an LSTM's gates have the order i, f, g, o, by hand") {
  // There is one step, so c = i g and h = o tanh(c). The gate f has no effect.
  const Case c{"", Recurrent{.hidden = 1}, {{1, 1, 1, 1}}};
  const auto logistic = [](double a) { return 1 / (1 + std::exp(-a)); };
  const Feed feed{{{1}}, {{1, 100, -2, 3}, {0, 0, 0, 0}, {0, 0, 0, 0}}, {}, {0}};
  check_example(c, feed, {{logistic(3) * std::tanh(logistic(1) * std::tanh(-2.0))}});
}

TEST_CASE("a GRU's h is (1 - z) n + z h of the previous step, by hand") {
  // z has no weights, so z = 1/2, h1 = n1 / 2 and h2 = n2 / 2 + h1 / 2, where n = tanh(x) = 1/2, 1/4. With dy only at
  // the last step, dn2 = 1/2, dn1 = 1/4 and dx = dn (1 - n^2).
  const Case c{"", Recurrent{.hidden = 1, .cell = gru_cell, .steps = last}, {{1, 1, 2, 1}}};
  const Feed feed{{{std::atanh(0.5), std::atanh(0.25)}}, {{0, 0, 1}, {0, 0, 0}, {3, 0, 0, 0}}, {}, {1}};
  check_example(c, feed, {{0.25}, {{0.25 * 0.75, 0.5 * 0.9375}}});
}

TEST_CASE("a GRU's r multiplies the sum of the product with h and its bias, by hand") {
  // x is 0 and r = z = 1/2, so n1 = tanh(1 + 2 / 2), h1 = n1 / 2, n2 = tanh(1 + (3 h1 + 2) / 2), h2 = n2 / 2 + h1 / 2.
  const double h1 = std::tanh(2.0) / 2, n2 = std::tanh(1 + (3 * h1 + 2) / 2);
  const Feed feed{{{0, 0}}, {{5, 6, 7}, {0, 0, 3}, {0, 0, 1, 2}}, {}, {0, 0}};
  check_example({"", Recurrent{.hidden = 1, .cell = gru_cell}, {{1, 1, 2, 1}}}, feed, {{h1, n2 / 2 + h1 / 2}});
}

TEST_CASE("a GRU's gates have the order r, z, n, m, by hand") {
  const Case c{"", Recurrent{.hidden = 1, .cell = gru_cell}, {{1, 1, 1, 1}}};
  const auto logistic = [](double a) { return 1 / (1 + std::exp(-a)); };
  const Feed feed{{{1}}, {{1, -2, 0.5}, {9, 9, 9}, {0.25, 0.75, 0.125, 2}}, {}, {0}};
  check_example(c, feed, {{logistic(1.25) * std::tanh(0.625 + 2 * logistic(1.25))}});
}

TEST_CASE("a recurrent op in f64 equals its definition") {
  for (const Case& c : large_cases()) {
    INFO(to_string(c));
    const auto spec = make_spec(backend(), c, {.dtype = DType::f64});
    if (decided_by_library() && refused(*spec)) continue;
    const Feed feed = make_feed(c, 5);
    const auto [want, bounds] = recurrent_by_definition(c, feed);
    check_result(run_unit(backend(), *spec, {}, feed), want, bounds, epsilon(DType::f64));
  }
}

TEST_CASE("a recurrent op agrees with the oracle") { check_all_against_oracle(large_cases()); }

TEST_CASE("a recurrent op has the gradients of finite differences") { check_all_differences(recurrent_cases); }

TEST_CASE("an id out of range makes a recurrent op's sequence NaN from this step on") {
  const Case c{"", Recurrent{.hidden = 2, .vocabulary = 3}, {{2, 1, 3, 1}}};
  const auto spec = make_spec(backend(), c, {.dtype = DType::f64});
  if (decided_by_library() && refused(*spec)) return;
  Feed feed = make_feed(c, 1);
  for (const double bad : {3.0, -1.0, 0.5, std::numeric_limits<double>::quiet_NaN(), 1e300}) {
    INFO(bad);
    feed.x[0] = {0, 1, 2, 0, bad, 2};
    const Result got = run_unit(backend(), *spec, {}, feed);
    for (std::size_t i = 0; i < got.y.size(); ++i) {
      const std::size_t image = i / 6, step = i % 3;
      CHECK(std::isnan(got.y[i]) == (image == 1 && step >= 1));
    }
  }
}
