// Ops that join and split values: add, concat, slice.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case> join_cases = {
    {"two", Add{}, {{2, 3, 4, 5}, {2, 3, 4, 5}}},
    {"vectors", Add{}, {{3, 37, 1, 1}, {3, 37, 1, 1}}},
    {"four", Add{}, {{1, 2, 3, 3}, {1, 2, 3, 3}, {1, 2, 3, 3}, {1, 2, 3, 3}}},
    {"seventy", Add{}, std::vector<Shape>(70, {1, 1, 2, 3})},
    {"long", Add{}, {{1, 3, 31, 17}, {1, 3, 31, 17}}},
    {"inference", Add{}, {{2, 3, 4, 5}, {2, 3, 4, 5}}, {}, Mode::inference},
    {"two", Concat{}, {{2, 3, 4, 5}, {2, 2, 4, 5}}},
    {"four branches", Concat{}, {{3, 4, 2, 3}, {3, 1, 2, 3}, {3, 7, 2, 3}, {3, 2, 2, 3}}},
    {"vectors", Concat{}, {{4, 5, 1, 1}, {4, 3, 1, 1}}},
    {"one alone", Concat{}, {{2, 3, 2, 2}}},
    {"inference", Concat{}, {{2, 3, 2, 3}, {2, 2, 2, 3}}, {}, Mode::inference},
    {"middle", Slice{.first = 1, .count = 2}, {{2, 5, 3, 4}}},
    {"first", Slice{.first = 0, .count = 3}, {{3, 4, 2, 2}}},
    {"last", Slice{.first = 3, .count = 1}, {{2, 4, 2, 3}}},
    {"all", Slice{.first = 0, .count = 4}, {{2, 4, 2, 3}}},
    {"vector", Slice{.first = 2, .count = 5}, {{3, 9, 1, 1}}},
    {"inference", Slice{.first = 1, .count = 2}, {{2, 4, 2, 3}}, {}, Mode::inference},
    {"rows", Concat{Axis::row}, {{2, 3, 2, 5}, {2, 3, 4, 5}, {2, 3, 1, 5}}},
    {"columns", Concat{Axis::column}, {{2, 3, 4, 2}, {2, 3, 4, 3}}},
    {"steps of sequences", Concat{Axis::row}, {{3, 5, 1, 1}, {3, 5, 6, 1}}},
    {"rows in inference", Concat{Axis::row}, {{2, 3, 2, 2}, {2, 3, 1, 2}}, {}, Mode::inference},
    {"every other channel", Slice{.first = 1, .count = 2, .step = 2}, {{2, 5, 3, 4}}},
    {"rows", Slice{.axis = Axis::row, .first = 1, .count = 2}, {{2, 3, 4, 5}}},
    {"every third row", Slice{.axis = Axis::row, .first = 0, .count = 3, .step = 3}, {{2, 3, 8, 5}}},
    {"columns", Slice{.axis = Axis::column, .first = 2, .count = 3}, {{2, 3, 4, 7}}},
    {"every other column", Slice{.axis = Axis::column, .first = 1, .count = 3, .step = 2}, {{2, 3, 4, 6}}},
    {"odd columns", Slice{.axis = Axis::column, .first = 0, .count = 4, .step = 2}, {{2, 3, 4, 7}}},
    {"one column", Slice{.axis = Axis::column, .first = 4, .count = 1}, {{2, 3, 4, 7}}},
    {"the last step", Slice{.axis = Axis::row, .first = 6, .count = 1}, {{3, 5, 7, 1}}},
    {"all rows", Slice{.axis = Axis::row, .first = 0, .count = 3}, {{2, 4, 3, 2}}},
    {"long rows", Slice{.axis = Axis::row, .first = 3, .count = 27}, {{2, 5, 31, 37}}},
    {"rows in inference", Slice{.axis = Axis::row, .first = 1, .count = 2}, {{2, 4, 3, 3}}, {}, Mode::inference},
};

}  // namespace

TEST_CASE("add, by hand") {
  check_example({"", Add{}, {{1, 1, 1, 2}, {1, 1, 1, 2}}}, {{{1, 2}, {10, 20}}, {}, {}, {3, 4}},
                {{11, 22}, {{3, 4}, {3, 4}}});
}

TEST_CASE("concat, by hand: image by image, channels one after another") {
  check_example({"", Concat{}, {{2, 1, 1, 2}, {2, 2, 1, 2}}},
                {{{1, 2, 3, 4}, {10, 20, 30, 40, 50, 60, 70, 80}}, {}, {}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
                {{1, 2, 10, 20, 30, 40, 3, 4, 50, 60, 70, 80}, {{1, 2, 7, 8}, {3, 4, 5, 6, 9, 10, 11, 12}}});
}

TEST_CASE("slice, by hand: the gradient of channels outside the slice is 0") {
  check_example({"", Slice{.first = 1, .count = 1}, {{2, 3, 1, 1}}}, {{{1, 2, 3, 4, 5, 6}}, {}, {}, {7, 8}},
                {{2, 5}, {{0, 7, 0, 0, 8, 0}}});
}

TEST_CASE("concat of rows, by hand: channel by channel, rows one after another") {
  check_example({"", Concat{Axis::row}, {{1, 2, 1, 2}, {1, 2, 2, 2}}},
                {{{1, 2, 3, 4}, {10, 20, 30, 40, 50, 60, 70, 80}}, {}, {}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
                {{1, 2, 10, 20, 30, 40, 3, 4, 50, 60, 70, 80}, {{1, 2, 7, 8}, {3, 4, 5, 6, 9, 10, 11, 12}}});
}

TEST_CASE("slice with a step, by hand: every second column, and zeros between the gradients") {
  check_example({"", Slice{.axis = Axis::column, .first = 1, .count = 2, .step = 2}, {{1, 1, 2, 5}}},
                {{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, {}, {}, {1, 2, 3, 4}},
                {{2, 4, 7, 9}, {{0, 1, 0, 2, 0, 0, 3, 0, 4, 0}}});
}

TEST_CASE("add, concat and slice agree with the oracle") { check_all_against_oracle(join_cases); }

TEST_CASE("add, concat and slice are exact in whole numbers") { check_all_integers(join_cases); }

TEST_CASE("add, concat and slice have the gradients of their differences") { check_all_differences(join_cases); }

TEST_CASE("add + ReLU as one unit agrees with the two ops") {  // activation_test.cpp tests other functions
  const Case c{"", Add{}, {{2, 3, 2, 5}, {2, 3, 2, 5}}, {{Relu{}}}};
  check_against_oracle(c);
  check_differences(c);
}
