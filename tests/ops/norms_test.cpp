// Group and layer normalisation.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case> norm_cases = {
    {"groups", GroupNorm{.groups = 2}, {{3, 6, 5, 3}}},
    {"one group", GroupNorm{.groups = 1}, {{2, 5, 4, 7}}},
    {"by instance", GroupNorm{.groups = 4}, {{3, 4, 5, 6}}},
    {"by instance, not affine", GroupNorm{.groups = 3, .affine = false}, {{2, 3, 4, 4}}},
    {"groups of vectors", GroupNorm{.groups = 3, .epsilon = 0.5}, {{5, 12, 1, 1}}},
    {"long groups", GroupNorm{.groups = 2}, {{2, 4, 36, 32}}},
    {"long groups of odd planes", GroupNorm{.groups = 1}, {{2, 3, 31, 33}}},
    {"many channels in a group", GroupNorm{.groups = 1, .epsilon = 1e-6}, {{1, 70, 2, 3}}},
    {"groups, in inference", GroupNorm{.groups = 2}, {{2, 4, 3, 5}}, {}, Mode::inference},
    {"pixels", LayerNorm{}, {{3, 6, 5, 3}}},
    {"pixels of even planes", LayerNorm{.epsilon = 1e-6}, {{2, 8, 4, 6}}},
    {"pixels, not affine", LayerNorm{.affine = false}, {{2, 5, 3, 3}}},
    {"few channels", LayerNorm{.epsilon = 0.5}, {{2, 2, 3, 7}}},
    {"long planes", LayerNorm{}, {{2, 3, 36, 32}}},
    {"vectors", LayerNorm{}, {{5, 37, 1, 1}}},
    {"long vectors, not affine", LayerNorm{.affine = false}, {{3, 600, 1, 1}}},
    {"pixels, in inference", LayerNorm{}, {{2, 4, 3, 5}}, {}, Mode::inference},
    {"vectors, in inference, not affine", LayerNorm{.affine = false}, {{2, 9, 1, 1}}, {}, Mode::inference},
};

// In both tests the values are 2 and 8: mean 5, variance 9 plus epsilon 7, normalised values -0.75 and 0.75.
constexpr double xh = 0.75;

}  // namespace

TEST_CASE("group norm, by hand: each group of an image is normalised by itself") {
  // g = scale * dy = {2 * 3, 2 * 1} and dx = (g - mean(g) - xh * mean(g * xh)) / 4. The second group is constant.
  const double mean = 4, product = (6 * -xh + 2 * xh) / 2;
  check_example(
      {"", GroupNorm{.groups = 2, .epsilon = 7}, {{1, 2, 1, 2}}}, {{{2, 8, 5, 5}}, {{2, 3}, {1, -1}}, {}, {3, 1, 1, 2}},
      {{1 - 2 * xh, 1 + 2 * xh, -1, -1},
       {{(6 - mean + xh * product) / 4, (2 - mean - xh * product) / 4, -1.5 / std::sqrt(7.0), 1.5 / std::sqrt(7.0)}},
       {{-2 * xh, 0}, {4, 3}}});
}

TEST_CASE("layer norm, by hand: the channels of each pixel are normalised by themselves") {
  // The pixels are {2, 8} and {8, 2}. The first pixel has g = {2 * 3, 3 * 1}, the second has g = 0.
  const double mean = 4.5, product = (6 * -xh + 3 * xh) / 2;
  check_example({"", LayerNorm{.epsilon = 7}, {{1, 2, 1, 2}}}, {{{2, 8, 8, 2}}, {{2, 3}, {1, -1}}, {}, {3, 0, 1, 0}},
                {{1 - 2 * xh, 1 + 2 * xh, -1 + 3 * xh, -1 - 3 * xh},
                 {{(6 - mean + xh * product) / 4, 0, (3 - mean - xh * product) / 4, 0}},
                 {{-3 * xh, xh}, {3, 1}}});
}

TEST_CASE("group and layer norms agree with the oracle") { check_all_against_oracle(norm_cases); }

TEST_CASE("group and layer norms have the gradients of their differences") { check_all_differences(norm_cases); }

TEST_CASE("norms lose no digits if the mean is far from 0") {
  // The means are 256 and the standard deviations about 1. A variance as a difference of mean squares in f32 would have
  // two correct digits.
  for (const Op& op : {Op{BatchNorm{}}, Op{GroupNorm{.groups = 1}}, Op{LayerNorm{}}})
    for (const Shape& shape : {Shape{2, 16, 4, 4}, Shape{3, 64, 1, 1}}) {
      const Case c{"", op, {shape}};
      Feed feed = make_feed(c, 3);
      for (double& value : feed.x[0]) value = static_cast<float>(value + 256);
      const Result want = reference(c, feed), got = run_case(c, feed, {.dtype = DType::f32});
      INFO(to_string(c));
      check_close("y", got.y, want.y, {Values(want.y.size(), 256 * 3), 8}, epsilon(DType::f32));
      for (std::size_t k = 0; k < want.state.size(); ++k)
        check_close("state", got.state[k], want.state[k], {absolute(want.state[k]), 32 + 8}, epsilon(DType::f32));
    }
}
