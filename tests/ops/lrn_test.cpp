// Local response normalisation across channels.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case> lrn_cases = {
    {"as AlexNet", Lrn{}, {{2, 9, 3, 4}}},
    {"as AlexNet's paper", Lrn{.size = 5, .alpha = 5e-4, .beta = 0.75, .k = 2}, {{1, 8, 2, 3}}},
    {"strong", Lrn{.size = 3, .alpha = 2, .beta = 0.5, .k = 0.5}, {{2, 5, 3, 2}}},
    {"even size", Lrn{.size = 4, .alpha = 1, .beta = 0.75, .k = 1}, {{2, 7, 2, 2}}},
    {"size 2", Lrn{.size = 2, .alpha = 1.5, .beta = 1, .k = 1}, {{1, 4, 3, 1}}},
    {"size 1", Lrn{.size = 1, .alpha = 1, .beta = 0.75, .k = 1}, {{2, 3, 2, 2}}},
    {"wider than the channels", Lrn{.size = 9, .alpha = 3, .beta = 0.75, .k = 1}, {{2, 3, 2, 3}}},
    {"many channels", Lrn{.size = 5, .alpha = 2, .beta = 0.75, .k = 1}, {{1, 37, 2, 3}}},
    {"many channels, even size", Lrn{.size = 4, .alpha = 2, .beta = 0.6, .k = 1}, {{2, 35, 1, 3}}},
    {"one channel", Lrn{.size = 5, .alpha = 1, .beta = 0.75, .k = 1}, {{2, 1, 3, 3}}},
    {"inference", Lrn{.size = 4, .alpha = 1, .beta = 0.75, .k = 2}, {{2, 6, 3, 2}}, {}, Mode::inference},
};

}  // namespace

TEST_CASE("lrn, by hand") {
  // With alpha / size = 1 and k = 1, the sums over a channel and its neighbours are 1 + 4 + 0, 1 + 4 + 0 + 4 and 1 + 0
  // + 4.
  const Case c{"", Lrn{.size = 3, .alpha = 3, .beta = 0.5, .k = 1}, {{1, 3, 1, 1}}};
  const double s0 = 5, s1 = 9, s2 = 5;
  // Only dy of the middle channel is not 0. y1 = x1 / sqrt(s1) and x1 = 0, so dx has only the term dy1 / sqrt(s1).
  check_example(c, {{{2, 0, 2}}, {}, {}, {0, 6, 0}},
                {{2 / std::sqrt(s0), 0, 2 / std::sqrt(s2)}, {{0, 6 / std::sqrt(s1), 0}}});
  // Only dy of the first channel is not 0, so dx1 = -2 beta alpha/size x1 dy0 x0 / s0^1.5 with x1 = 1.
  const double t0 = 1 + 4 + 1;
  check_example(
      c, {{{2, 1, 0}}, {}, {}, {3, 0, 0}},
      {{},
       {{3 / std::sqrt(t0) - 2 * 0.5 * 2 * 3 * 2 / std::pow(t0, 1.5), -2 * 0.5 * 1 * 3 * 2 / std::pow(t0, 1.5), 0}}});
}

TEST_CASE("lrn, by hand: an even size has one more channel below than above, and always divides by the size") {
  // Channel c sees c - 1 and c; beta = 1, k = 1, alpha / size = 1.
  const Case c{"", Lrn{.size = 2, .alpha = 2, .beta = 1, .k = 1}, {{1, 3, 1, 1}}};
  check_example(c, {{{1, 2, 3}}}, {{1 / 2.0, 2 / 6.0, 3 / 14.0}});
}

TEST_CASE("lrn agrees with the oracle") { check_all_against_oracle(lrn_cases); }

TEST_CASE("lrn has the gradients of finite differences") { check_all_differences(lrn_cases); }
