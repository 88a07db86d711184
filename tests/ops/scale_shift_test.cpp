// A tensor times a scale plus a shift. Scale and shift are fixed or learned, and each channel has its own pair or all
// channels have one pair.

#include "tests/support/cases/plans.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case> scale_shift_cases = {
    {"by channel", ScaleShift{}, {{2, 3, 4, 5}}},
    {"one for all", ScaleShift{.by_channel = false}, {{2, 3, 4, 5}}},
    {"vectors", ScaleShift{}, {{3, 37, 1, 1}}},
    {"odd planes", ScaleShift{}, {{2, 5, 3, 7}}},
    {"large planes", ScaleShift{}, {{1, 2, 97, 89}}},
    {"in inference", ScaleShift{}, {{2, 3, 4, 4}}, {}, Mode::inference},
    {"learned", ScaleShift{.learned = true}, {{2, 3, 4, 5}}},
    {"one learned", ScaleShift{.by_channel = false, .learned = true}, {{2, 3, 4, 5}}},
    {"learned vectors", ScaleShift{.learned = true}, {{3, 37, 1, 1}}},
    {"learned, odd planes", ScaleShift{.learned = true}, {{2, 5, 3, 7}}},
    {"learned, large planes", ScaleShift{.learned = true}, {{3, 2, 97, 89}}},
    {"one learned, large planes", ScaleShift{.by_channel = false, .learned = true}, {{3, 2, 96, 88}}},
    {"learned, in inference", ScaleShift{.learned = true}, {{2, 3, 4, 4}}, {}, Mode::inference},
    {"one in inference", ScaleShift{.by_channel = false}, {{3, 11, 1, 2}}, {}, Mode::inference},
};

}  // namespace

TEST_CASE("scale and shift, by hand: each channel has its own pair, and dx is dy times the scale") {
  check_example({"", ScaleShift{}, {{1, 2, 1, 2}}}, {{{1, 2, 3, 4}}, {}, {{10, -1}, {5, 7}}, {1, 2, 3, 4}},
                {{15, 25, 4, 3}, {{10, 20, -3, -4}}, {}, {{10, -1}, {5, 7}}});
  check_example({"", ScaleShift{}, {{1, 2, 1, 1}}}, {{{1, 3}}, {}, {{10, -1}, {5, 7}}, {1, 3}}, {{15, 4}, {{10, -3}}});
}

TEST_CASE("scale and shift, by hand: one pair for all channels") {
  check_example({"", ScaleShift{.by_channel = false}, {{1, 2, 1, 2}}},
                {{{1, 2, 3, 4}}, {}, {{0.5}, {-1}}, {1, 2, 3, 4}}, {{-0.5, 0, 0.5, 1}, {{0.5, 1, 1.5, 2}}});
}

TEST_CASE("scale and shift, by hand: if learned, their gradients are the sums of dy x and of dy") {
  check_example({"", ScaleShift{.learned = true}, {{1, 2, 1, 2}}},
                {{{1, 2, 3, 4}}, {{10, -1}, {5, 7}}, {}, {1, 2, 3, 4}},
                {{15, 25, 4, 3}, {{10, 20, -3, -4}}, {{5, 25}, {3, 7}}});
  check_example({"", ScaleShift{.by_channel = false, .learned = true}, {{1, 2, 1, 2}}},
                {{{1, 2, 3, 4}}, {{0.5}, {-1}}, {}, {1, 2, 3, 4}},
                {{-0.5, 0, 0.5, 1}, {{0.5, 1, 1.5, 2}}, {{30}, {10}}});
}

TEST_CASE("fixed scale and shift are initially 1 and 0, and no training changes them") {
  Graph graph("fixed");
  scale_shift(fully_connected(graph.input({2, 3, 1, 1}, "x"), "fc", {.outputs = 2}), "fixed");
  Plan plan(graph, backend(), {.optimiser = Sgd{.momentum = 0.9, .weight_decay = 0.5}});
  const auto numbers = [&](const char* name) { return read(plan, plan.state(name)); };
  CHECK((numbers("fixed.scale") == Values{1, 1} && numbers("fixed.shift") == Values{0, 0}));
  write(plan, plan.state("fixed.scale"), Values{2, 3});
  plan.parameters_changed();
  for (int step = 0; step < 3; ++step) {
    run_passes(plan);
    plan.update(0.1);
  }
  CHECK((numbers("fixed.scale") == Values{2, 3} && numbers("fixed.shift") == Values{0, 0}));
}

TEST_CASE("scale and shift agree with the oracle") { check_all_against_oracle(scale_shift_cases); }

TEST_CASE("scale and shift are exact in whole numbers") { check_all_integers(scale_shift_cases); }

TEST_CASE("scale and shift have the gradients of their differences") { check_all_differences(scale_shift_cases); }
