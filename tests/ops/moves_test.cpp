// Ops that only move elements: pad and reorder.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case> moves_cases = {
    {"four sides", Pad{.before = {1, 2}, .after = {3, 1}, .value = 0.5}, {{2, 3, 4, 5}}},
    {"right and below", Pad{.before = 0, .after = 1}, {{2, 3, 4, 4}}},
    {"left and above", Pad{.before = {2, 3}, .after = 0, .value = -7}, {{1, 2, 1, 1}}},
    {"nothing", Pad{.before = 0, .after = 0}, {{2, 3, 2, 3}}},
    {"long", Pad{.before = {5, 1}, .after = {0, 4}, .value = 2}, {{1, 5, 31, 29}}},
    {"inference", Pad{.before = 1, .after = {0, 2}, .value = 3}, {{2, 3, 4, 5}}, {}, Mode::inference},
    {"channels", Pad{.before = 0, .after = 0, .value = 3, .channels_before = 2, .channels_after = 1}, {{2, 3, 4, 5}}},
    {"all axes", Pad{.before = {1, 2}, .after = {0, 1}, .channels_before = 1, .channels_after = 2}, {{2, 3, 4, 5}}},
    {"edge", Pad{.before = {1, 4}, .after = {5, 0}, .by = PadBy::edge}, {{2, 3, 3, 2}}},
    {"reflect", Pad{.before = {2, 1}, .after = {0, 3}, .by = PadBy::reflect}, {{2, 3, 3, 4}}},
    {"wrap", Pad{.before = {3, 1}, .after = {2, 4}, .by = PadBy::wrap}, {{2, 3, 3, 4}}},
    {"wrap in inference", Pad{.before = 1, .after = 1, .by = PadBy::wrap}, {{2, 3, 3, 4}}, {}, Mode::inference},
    {"two groups", channel_shuffle({2, 6, 3, 5}, 2), {{2, 6, 3, 5}}},
    {"three groups", channel_shuffle({2, 12, 2, 2}, 3), {{2, 12, 2, 2}}},
    {"one group", channel_shuffle({2, 3, 2, 3}, 1), {{2, 3, 2, 3}}},
    {"groups of one", channel_shuffle({2, 5, 2, 3}, 5), {{2, 5, 2, 3}}},
    {"shuffled vectors", channel_shuffle({3, 8, 1, 1}, 4), {{3, 8, 1, 1}}},
    {"long shuffle", channel_shuffle({1, 10, 31, 29}, 2), {{1, 10, 31, 29}}},
    {"shuffle in inference", channel_shuffle({2, 4, 3, 3}, 2), {{2, 4, 3, 3}}, {}, Mode::inference},
    {"to space", pixel_shuffle({2, 12, 3, 5}, 2), {{2, 12, 3, 5}}},
    {"to depth", pixel_unshuffle({2, 2, 6, 9}, 3), {{2, 2, 6, 9}}},
    {"to space by 4", pixel_shuffle({2, 32, 3, 5}, 4), {{2, 32, 3, 5}}},
    {"to depth by 4", pixel_unshuffle({2, 2, 8, 12}, 4), {{2, 2, 8, 12}}},
    {"to depth by 2", pixel_unshuffle({2, 2, 8, 12}, 2), {{2, 2, 8, 12}}},
    {"transpose", Reorder{{5, 21}, {1, 0}, 21, {1, 5}}, {{2, 5, 3, 7}}},
    {"large transpose", Reorder{{37, 19 * 23}, {1, 0}, 19, {23, 37}}, {{2, 37, 19, 23}}},
    {"long pairs", Reorder{{2, 700}, {1, 0}, 1, {1, 1400}}, {{1, 2, 1, 700}}},
    {"other grouping", Reorder{{30}, {0}, 6, {5, 1}}, {{2, 5, 3, 2}}},
    {"all axes reversed", Reorder{{2, 3, 4, 5, 2}, {4, 3, 2, 1, 0}, 10, {4, 6}}, {{2, 6, 4, 10}}},
    {"one element", Reorder{{}, {}, 1, 1}, {{3, 1, 1, 1}}},
};

}  // namespace

TEST_CASE("pad, by hand: each side has its own width, and the gradient of the border is dropped") {
  check_example({"", Pad{.before = {1, 0}, .after = {0, 2}, .value = 9}, {{1, 1, 2, 2}}},
                {{{1, 2, 3, 4}}, {}, {}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
                {{9, 9, 9, 9, 1, 2, 9, 9, 3, 4, 9, 9}, {{5, 6, 9, 10}}});
}

TEST_CASE("pad by cells, by hand: by edge, by reflection and circular, with their gradients") {
  const auto check = [](PadBy by, const Values& y, const Values& dx) {
    check_example({"", Pad{.before = {0, 2}, .after = {0, 1}, .by = by}, {{1, 1, 1, 3}}},
                  {{{1, 2, 3}}, {}, {}, {1, 2, 4, 8, 16, 32}}, {y, {dx}});
  };
  check(PadBy::edge, {1, 1, 1, 2, 3, 3}, {7, 8, 48});
  check(PadBy::reflect, {3, 2, 1, 2, 3, 2}, {4, 42, 17});
  check(PadBy::wrap, {2, 3, 1, 2, 3, 1}, {36, 9, 18});
}

TEST_CASE("channel shuffle, by hand: y has the first channels of all groups, then the second channels") {
  const Shape x{1, 6, 1, 1};
  check_example({"", channel_shuffle(x, 2), {x}}, {{{1, 2, 3, 4, 5, 6}}, {}, {}, {1, 2, 3, 4, 5, 6}},
                {{1, 4, 2, 5, 3, 6}, {{1, 3, 5, 2, 4, 6}}});
}

TEST_CASE("reorder, by hand: channels become the pixels of a block, and the gradient is moved back") {
  const Shape x{1, 4, 1, 2};
  check_example({"", pixel_shuffle(x, 2), {x}}, {{{1, 2, 3, 4, 5, 6, 7, 8}}, {}, {}, {1, 2, 3, 4, 5, 6, 7, 8}},
                {{1, 3, 2, 4, 5, 7, 6, 8}, {{1, 3, 2, 4, 5, 7, 6, 8}}});
}

TEST_CASE("a reorder that moves no element may work in place") {
  const Case c{"", Reorder{{30}, {0}, 6, {5, 1}}, {{2, 5, 3, 2}}};
  const Lowered unit = backend().lower(*make_spec(backend(), c, {.dtype = DType::f32}), {});
  CHECK((unit.y_may_alias_x[0] && unit.dx_is_dy[0]));
}

TEST_CASE("a pad of infinity changes no element of the image, and a NaN keeps its place") {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Case c{"", Pad{.before = {0, 1}, .after = {0, 1}, .value = -infinity}, {{1, 1, 1, 2}}, {}, Mode::inference};
  for (const DType dtype : element_types()) {
    const Values y = run_case(c, {{{nan, 5}}}, {.dtype = dtype}).y;
    CHECK((y[0] == -infinity && std::isnan(y[1]) && y[2] == 5 && y[3] == -infinity));
  }
}

TEST_CASE("pad and reorder agree with the oracle") { check_all_against_oracle(moves_cases); }

TEST_CASE("pad and reorder are exact in whole numbers") { check_all_integers(moves_cases); }

TEST_CASE("pad and reorder have the gradients of their differences") { check_all_differences(moves_cases); }
