// PReLU.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

std::vector<Case> prelu_cases() {
  std::vector<Case> all;
  for (const PRelu op : {PRelu{}, PRelu{.by_channel = false}}) {
    all.push_back({"map", op, {{2, 3, 4, 5}}});
    all.push_back({"vectors", op, {{3, 37, 1, 1}}});
    all.push_back({"odd planes", op, {{2, 5, 3, 7}}});
    all.push_back({"large planes", op, {{3, 2, 97, 89}}});
    all.push_back({"inference", op, {{2, 3, 4, 4}}, {}, Mode::inference});
  }
  return all;
}

}  // namespace

TEST_CASE("prelu, by hand: numbers up to 0 are multiplied by a slope, and add to its gradient") {
  const Feed feed{{{-2, 0, 3, -4}}, {{0.5, -3}}, {}, {1, 2, 4, 8}};
  check_example({"", PRelu{}, {{1, 2, 1, 2}}}, feed, {{-1, 0, 3, 12}, {{0.5, 1, 4, -24}}, {{-2, -32}}});
  Feed one = feed;
  one.w = {{0.5}};
  check_example({"", PRelu{.by_channel = false}, {{1, 2, 1, 2}}}, one, {{-1, 0, 3, -2}, {{0.5, 1, 4, 4}}, {{-34}}});
}

TEST_CASE("the slopes of a prelu are initially 1/4") {
  Graph graph("start");
  prelu(graph.input({2, 3, 1, 1}, "x"), "act");
  const Plan plan(graph, backend(), {});
  CHECK(read(backend().device(), plan.parameter("act.weight")) == Values{0.25, 0.25, 0.25});
}

TEST_CASE("prelu agrees with the oracle") { check_all_against_oracle(prelu_cases()); }

TEST_CASE("prelu is exact in whole numbers") { check_all_integers(prelu_cases()); }

TEST_CASE("prelu has the gradients of its differences") { check_all_differences(prelu_cases()); }
