// Resizing images to other numbers of rows and columns.

#include "lib/core/units/resize_axis.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

/// Cases whose weights are 1 or multiples of 1/4, and therefore exact.
const std::vector<Case> exact_cases = {
    {"nearest", Resize{.to = {8, 10}}, {{2, 3, 4, 5}}},
    {"nearest of other extents", Resize{.to = {7, 3}}, {{2, 5, 4, 5}}},
    {"nearest by a step", Resize{.to = {5, 7}, .step_h = 1 / 1.5, .step_w = 0.5}, {{2, 3, 4, 5}}},
    {"nearest exact", Resize{.to = {6, 4}, .by = ResizeBy::nearest_exact}, {{2, 3, 4, 5}}},
    {"nearest in inference", Resize{.to = 6}, {{2, 3, 3, 3}}, {}, Mode::inference},
    {"linear", Resize{.to = {8, 10}, .by = ResizeBy::linear}, {{2, 3, 4, 5}}},
    {"corners", Resize{.to = {9, 5}, .by = ResizeBy::linear_aligned}, {{2, 3, 5, 3}}},
    {"one pixel", Resize{.to = {3, 4}, .by = ResizeBy::linear}, {{2, 9, 1, 1}}},
    {"nearest by a small step", Resize{.to = {3, 5}, .step_h = 0.25, .step_w = 0.125}, {{2, 3, 4, 5}}},
    {"nearest, twice, in vectors", Resize{.to = {6, 80}}, {{2, 3, 3, 40}}},
    {"linear, twice, in vectors", Resize{.to = {6, 80}, .by = ResizeBy::linear}, {{2, 3, 3, 40}}},
    {"linear, half, in vectors", Resize{.to = {3, 40}, .by = ResizeBy::linear}, {{2, 3, 6, 80}}},
    {"to one pixel", Resize{.to = 1, .by = ResizeBy::linear_aligned}, {{2, 3, 4, 5}}},
};

std::vector<Case> cases() {
  std::vector<Case> all = exact_cases;
  const Case others[] = {
      {"linear, fewer rows", Resize{.to = {3, 11}, .by = ResizeBy::linear}, {{2, 3, 7, 5}}},
      {"linear, fewer columns", Resize{.to = {11, 2}, .by = ResizeBy::linear}, {{2, 3, 7, 5}}},
      {"linear, a step", Resize{.to = {6, 7}, .by = ResizeBy::linear, .step_h = 1 / 1.5, .step_w = 3}, {{2, 3, 4, 5}}},
      {"linear, a few more columns", Resize{.to = {4, 61}, .by = ResizeBy::linear}, {{1, 2, 3, 45}}},
      {"linear, eight times", Resize{.to = {40, 24}, .by = ResizeBy::linear}, {{1, 2, 5, 3}}},
      {"corners, fewer", Resize{.to = {3, 4}, .by = ResizeBy::linear_aligned}, {{2, 3, 7, 9}}},
      {"linear in inference", Resize{.to = 7, .by = ResizeBy::linear}, {{2, 3, 4, 5}}, {}, Mode::inference},
  };
  all.insert(all.end(), std::begin(others), std::end(others));
  return all;
}

}  // namespace

TEST_CASE("resize, by hand: the source of each column, and the gradients") {
  const auto check = [](Resize op, const Values& y, const Values& dx) {
    check_example({"", op, {{1, 1, 1, 3}}}, {{{0, 8, 16}}, {}, {}, {1, 2, 4, 8, 16, 32}}, {y, {dx}});
  };
  check({.to = {1, 6}}, {0, 0, 8, 8, 16, 16}, {3, 12, 48});
  check({.to = {1, 6}, .step_w = 0.8}, {0, 0, 8, 16, 16, 16}, {3, 4, 56});
  check({.to = {1, 6}, .by = ResizeBy::nearest_exact, .step_w = 0.8}, {0, 8, 16, 16, 16, 16}, {1, 2, 60});
  check({.to = {1, 6}, .by = ResizeBy::linear}, {0, 2, 6, 10, 14, 16}, {3.5, 13.5, 46});
  check({.to = {1, 6}, .by = ResizeBy::linear_aligned}, {0, 3.2, 6.4, 9.6, 12.8, 16}, {3, 16.8, 43.2});
}

TEST_CASE("resize, by hand: rows and columns have their own weights") {
  check_example({"", Resize{.to = {4, 1}, .by = ResizeBy::linear}, {{1, 1, 2, 2}}},
                {{{0, 2, 8, 16}}, {}, {}, {1, 2, 4, 8}}, {{1, 3.75, 9.25, 12}, {{1.75, 1.75, 5.75, 5.75}}});
}

TEST_CASE("the nearest cell of a resize is the exact quotient, for all extents up to 100") {
  std::int64_t wrong = 0;
  for (int from = 1; from <= 100; ++from)
    for (int to = 1; to <= 100; ++to) {
      const ResizeAxis below = resize_axis(ResizeBy::nearest, from, to, 0);
      const ResizeAxis exact = resize_axis(ResizeBy::nearest_exact, from, to, 0);
      for (int i = 0; i < to; ++i) {
        wrong += static_cast<int>(below.position(i)) != i * from / to;
        wrong += static_cast<int>(exact.position(i)) != (2 * i + 1) * from / (2 * to);
      }
    }
  CHECK(wrong == 0);
}

TEST_CASE("resize agrees with the oracle") { check_all_against_oracle(cases()); }

TEST_CASE("resize is exact in whole numbers if its weights are exact") { check_all_integers(exact_cases); }

TEST_CASE("resize has the gradients of finite differences") { check_all_differences(cases()); }
