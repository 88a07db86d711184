// Fully connected layers.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case> fully_connected_cases = {
    {"vector", FullyConnected{.outputs = 5}, {{3, 7, 1, 1}}},
    {"no bias", FullyConnected{.outputs = 4, .bias = false}, {{2, 9, 1, 1}}},
    {"a map is flattened", FullyConnected{.outputs = 6}, {{3, 2, 3, 4}}},
    {"one image", FullyConnected{.outputs = 17}, {{1, 33, 1, 1}}},
    {"one output", FullyConnected{.outputs = 1}, {{5, 3, 2, 2}}},
    {"many images", FullyConnected{.outputs = 3}, {{19, 5, 1, 2}}},
    {"long sums", FullyConnected{.outputs = 9}, {{2, 31, 5, 5}}},
    {"inference", FullyConnected{.outputs = 5}, {{2, 3, 2, 2}}, {}, Mode::inference},
};

}  // namespace

TEST_CASE("fully connected, by hand") {
  const Case c{"", FullyConnected{.outputs = 3}, {{2, 2, 1, 1}}};
  check_example(
      c, {{{1, 2, 3, 4}}, {{1, 0, 0, 1, 10, 100}, {1, 2, 3}}, {}, {1, 0, 0, 0, 2, 1}},
      {{1 + 1, 2 + 2, 210 + 3, 3 + 1, 4 + 2, 430 + 3}, {{1, 0, 10, 2 + 100}}, {{1, 2, 6, 8, 3, 4}, {1, 2, 1}}});
}

TEST_CASE("fully connected, by hand: a map is flattened channel by channel") {
  const Case c{"", FullyConnected{.outputs = 1, .bias = false}, {{1, 2, 1, 2}}};
  check_example(c, {{{1, 2, 3, 4}}, {{1000, 100, 10, 1}}, {}, {2}}, {{1234}, {{2000, 200, 20, 2}}, {{2, 4, 6, 8}}});
}

TEST_CASE("fully connected agrees with the oracle") { check_all_against_oracle(fully_connected_cases); }

TEST_CASE("fully connected is exact in whole numbers") { check_all_integers(fully_connected_cases); }

TEST_CASE("fully connected has the gradients of finite differences") { check_all_differences(fully_connected_cases); }

TEST_CASE("fully connected + ReLU as one unit agrees with the two ops") {
  const Case c{"", FullyConnected{.outputs = 5}, {{3, 7, 1, 1}}, {{Relu{}}}};
  check_against_oracle(c);
  check_differences(c);
}
