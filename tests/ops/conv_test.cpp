// Convolution: by hand, compared with the oracle, in whole numbers, by differences, and refusals.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case> conv_cases = {
    {"1x1", Conv{.channels = 5, .kernel = 1}, {{2, 3, 4, 5}}},
    {"1x1, no bias", Conv{.channels = 4, .kernel = 1, .bias = false}, {{3, 6, 5, 3}}},
    {"1x1, planes in packs", Conv{.channels = 12, .kernel = 1}, {{3, 8, 14, 14}}},
    {"1x1, odd planes, many channels", Conv{.channels = 68, .kernel = 1, .bias = false}, {{3, 20, 7, 7}}},
    {"1x1, one pixel", Conv{.channels = 5, .kernel = 1}, {{3, 6, 1, 1}}},
    {"1x1, long sums", Conv{.channels = 3, .kernel = 1}, {{1, 600, 3, 4}}},
    {"1x1, stride 2", Conv{.channels = 4, .kernel = 1, .stride = 2, .bias = false}, {{2, 3, 5, 6}}},
    {"1x1, padded", Conv{.channels = 2, .kernel = 1, .pad = 1}, {{1, 3, 3, 4}}},
    {"1x1, padding alone is read", Conv{.channels = 2, .kernel = 1, .stride = 2, .pad = 1}, {{2, 3, 1, 1}}},
    {"3x3", Conv{.channels = 4, .kernel = 3}, {{2, 3, 6, 7}}},
    {"3x3, padded", Conv{.channels = 4, .kernel = 3, .pad = 1}, {{2, 3, 6, 7}}},
    {"3x3, padded, wide", Conv{.channels = 17, .kernel = 3, .pad = 1, .bias = false}, {{2, 9, 8, 9}}},
    {"3x3, many tiles", Conv{.channels = 3, .kernel = 3, .pad = 1}, {{3, 2, 14, 30}}},
    {"3x3, padded by 2", Conv{.channels = 3, .kernel = 3, .pad = 2, .groups = 3}, {{2, 6, 5, 9}}},
    {"3x3, one pixel", Conv{.channels = 3, .kernel = 3, .pad = 1}, {{2, 2, 1, 1}}},
    {"3x3, stride 2", Conv{.channels = 3, .kernel = 3, .stride = 2, .pad = 1}, {{2, 3, 7, 8}}},
    {"3x3, last rows unread", Conv{.channels = 2, .kernel = 3, .stride = 3}, {{2, 2, 8, 10}}},
    {"stride beyond kernel", Conv{.channels = 3, .kernel = 2, .stride = 4, .pad = 1}, {{1, 2, 9, 11}}},
    {"a huge stride, so one window", Conv{.channels = 3, .kernel = 2, .stride = 1 << 20, .pad = 1}, {{1, 2, 9, 11}}},
    {"stride 2x1", Conv{.channels = 3, .kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 0}}, {{2, 2, 6, 5}}},
    {"1x7", Conv{.channels = 3, .kernel = {1, 7}, .pad = {0, 3}}, {{1, 2, 4, 9}}},
    {"7x1", Conv{.channels = 3, .kernel = {7, 1}, .pad = {3, 0}, .bias = false}, {{1, 2, 9, 4}}},
    {"dilation 2", Conv{.channels = 3, .kernel = 3, .pad = 2, .dilation = 2}, {{2, 2, 7, 6}}},
    {"dilation 1x3, stride 2x1",
     Conv{.channels = 2, .kernel = {2, 3}, .stride = {2, 1}, .pad = {0, 3}, .dilation = {1, 3}},
     {{1, 3, 6, 8}}},
    {"stride 2, many channels", Conv{.channels = 6, .kernel = 3, .stride = 2, .pad = 1}, {{2, 17, 7, 6}}},
    {"dilation 2, many channels", Conv{.channels = 6, .kernel = 3, .pad = 2, .dilation = 2}, {{2, 17, 5, 6}}},
    {"dilation 3, stride 2", Conv{.channels = 6, .kernel = 2, .stride = 2, .pad = 1, .dilation = 3}, {{1, 17, 8, 7}}},
    {"pad beyond kernel", Conv{.channels = 2, .kernel = 2, .pad = 3}, {{1, 2, 3, 4}}},
    {"5x5, pad 2", Conv{.channels = 3, .kernel = 5, .pad = 2}, {{2, 2, 6, 5}}},
    {"5x5, wide", Conv{.channels = 17, .kernel = 5, .pad = {1, 2}, .bias = false}, {{2, 9, 8, 9}}},
    {"5x5, 2 groups", Conv{.channels = 6, .kernel = 5, .pad = 2, .groups = 2}, {{2, 4, 5, 7}}},
    {"first layer", Conv{.channels = 4, .kernel = 7, .stride = 2, .pad = 3, .bias = false}, {{2, 3, 13, 12}}},
    {"first layer of AlexNet", Conv{.channels = 4, .kernel = 11, .stride = 4, .pad = 2}, {{1, 3, 19, 18}}},
    {"2 groups", Conv{.channels = 6, .kernel = 3, .pad = 1, .groups = 2}, {{2, 4, 5, 6}}},
    {"3 groups", Conv{.channels = 6, .kernel = 3, .stride = 2, .pad = 1, .groups = 3, .bias = false}, {{2, 9, 5, 6}}},
    {"1x1, 2 groups", Conv{.channels = 4, .kernel = 1, .groups = 2}, {{2, 6, 3, 5}}},
    {"depthwise", Conv{.channels = 5, .kernel = 3, .pad = 1, .groups = 5}, {{2, 5, 5, 4}}},
    {"depthwise, two per channel", Conv{.channels = 34, .kernel = 3, .stride = 2, .groups = 17}, {{1, 17, 7, 6}}},
    {"depthwise, many pixels", Conv{.channels = 2, .kernel = 3, .groups = 2}, {{2, 2, 34, 34}}},
    {"depthwise, 5x5, stride 2", Conv{.channels = 6, .kernel = 5, .stride = 2, .pad = 2, .groups = 3}, {{2, 3, 9, 8}}},
    {"depthwise, 7x7, two per channel", Conv{.channels = 4, .kernel = 7, .pad = 3, .groups = 2}, {{2, 2, 9, 10}}},
    {"depthwise, 7x7, stride 2", Conv{.channels = 2, .kernel = 7, .stride = 2, .pad = 3, .groups = 2}, {{1, 2, 9, 11}}},
    {"depthwise, 5x5, long rows", Conv{.channels = 3, .kernel = 5, .pad = 2, .groups = 3}, {{2, 3, 9, 21}}},
    {"depthwise, stride 2, odd rows",
     Conv{.channels = 8, .kernel = 3, .stride = 2, .pad = 1, .groups = 4, .bias = false},
     {{2, 4, 9, 11}}},
    {"depthwise, dilation 2, stride 3x2",
     Conv{.channels = 3, .kernel = {3, 2}, .stride = {3, 2}, .pad = 2, .dilation = 2, .groups = 3},
     {{2, 3, 8, 9}}},
    {"depthwise", Conv{.channels = 4, .kernel = 3, .pad = 1, .groups = 4}, {{2, 4, 6, 7}}, {}, Mode::inference},
    {"inference", Conv{.channels = 4, .kernel = 3, .pad = 1}, {{2, 3, 6, 7}}, {}, Mode::inference},
    {"grouped", Conv{.channels = 4, .kernel = 3, .stride = 2, .groups = 2}, {{1, 4, 7, 7}}, {}, Mode::inference},
};

}  // namespace

TEST_CASE("conv, by hand: a 2x2 window over a 3x3 image") {
  //      1 2 3      window 1  0      y = x[p,q] - x[p+1,q+1] + 10
  //  x = 4 5 6             0 -1
  //      7 8 9
  const Case c{"", Conv{.channels = 1, .kernel = 2}, {{1, 1, 3, 3}}};
  check_example(c, {{{1, 2, 3, 4, 5, 6, 7, 8, 9}}, {{1, 0, 0, -1}, {10}}, {}, {1, 2, 3, 4}},
                {{6, 6, 6, 6},
                 // Each dy adds to dx by the window: dy at the top left, -dy at the bottom right.
                 {{1, 2, 0, 3, 4 - 1, -2, 0, -3, -4}},
                 // dw[r,s] is the sum of dy times the x under the window's cell (r,s). db is the sum of dy.
                 {{1 * 1 + 2 * 2 + 3 * 4 + 4 * 5, 1 * 2 + 2 * 3 + 3 * 5 + 4 * 6, 1 * 4 + 2 * 5 + 3 * 7 + 4 * 8,
                   1 * 5 + 2 * 6 + 3 * 8 + 4 * 9},
                  {10}}});
}

TEST_CASE("conv, by hand: the window is not flipped (cross-correlation)") {
  const Case c{"", Conv{.channels = 1, .kernel = {1, 3}, .pad = {0, 1}, .bias = false}, {{1, 1, 1, 3}}};
  check_example(c, {{{1, 10, 100}}, {{1, 2, 3}}, {}, {1, 0, 0}},
                {{1 * 2 + 10 * 3, 1 * 1 + 10 * 2 + 100 * 3, 10 * 1 + 100 * 2}, {{2, 3, 0}}, {{0, 1, 10}}});
}

TEST_CASE("conv, by hand: stride, padding and dilation") {
  // The window's cells are 2 apart. The first window begins at -1, so the outputs read x[-1], x[1] and x[1], x[3].
  const Case c{"",
               Conv{.channels = 1, .kernel = {1, 2}, .stride = 2, .pad = {0, 1}, .dilation = {1, 2}, .bias = false},
               {{1, 1, 1, 4}}};
  check_example(c, {{{1, 2, 3, 4}}, {{5, 7}}, {}, {1, 10}},
                {{2 * 7, 2 * 5 + 4 * 7}, {{0, 1 * 7 + 10 * 5, 0, 10 * 7}}, {{10 * 2, 1 * 2 + 10 * 4}}});
}

TEST_CASE("conv, by hand: groups read only their own channels") {
  const Case c{"", Conv{.channels = 2, .kernel = 1, .groups = 2}, {{1, 4, 1, 1}}};
  check_example(c, {{{1, 2, 3, 4}}, {{1, 10, 100, 1000}, {5, 6}}, {}, {1, 2}},
                {{1 + 20 + 5, 300 + 4000 + 6}, {{1, 10, 200, 2000}}, {{1, 2, 6, 8}, {1, 2}}});
}

TEST_CASE("conv agrees with the oracle") { check_all_against_oracle(conv_cases); }

TEST_CASE("conv is exact in whole numbers") { check_all_integers(conv_cases); }

TEST_CASE("conv has the gradients of finite differences") { check_all_differences(conv_cases); }

TEST_CASE("conv + ReLU as one unit agrees with the two ops") {
  const Case padded{"", Conv{.channels = 4, .kernel = 3, .pad = 1}, {{2, 3, 4, 5}}, {{Relu{}}}};
  const Case pixelwise{"", Conv{.channels = 4, .kernel = 1}, {{1, 3, 4, 5}}, {{Relu{}}}, Mode::inference};
  check_against_oracle(padded);
  const Case in_packs{"", Conv{.channels = 8, .kernel = 1}, {{2, 4, 4, 5}}, {{Relu{}}}};
  check_against_oracle(pixelwise);
  check_against_oracle({"", Conv{.channels = 6, .kernel = 3, .pad = 1, .groups = 3}, {{2, 3, 4, 5}}, {{Relu{}}}});
  check_against_oracle(in_packs);
  check_differences(padded);
}

TEST_CASE("conv + batch norm + Add + ReLU as one unit of inference agrees with the four ops") {
  const BatchNorm norm;
  for (const bool bias : {false, true})
    for (const int kernel : {1, 3, 5}) {
      const Conv conv{.channels = 5, .kernel = kernel, .pad = kernel / 2, .bias = bias};
      for (const std::vector<Link>& tail : {std::vector<Link>{{norm}},
                                            {{norm}, {Relu{}}},
                                            {{norm}, {Add{}, 1}, {Relu{}}},
                                            {{norm}, {Add{}}},
                                            {{Add{}, 1}},
                                            {{Add{}}, {Relu{}}}})
        for (const int groups : {1, 4}) {
          Conv grouped = conv;
          grouped.groups = groups;
          grouped.channels += groups - 1;
          check_against_oracle({"", grouped, {{2, 4, 6, 5}}, tail, Mode::inference});
        }
    }
  check_against_oracle(
      {"", Conv{.channels = 6, .kernel = 3, .stride = 2, .groups = 2}, {{2, 4, 7, 7}}, {{norm}}, Mode::inference});
  check_against_oracle(
      {"many tiles", Conv{.channels = 6, .kernel = 3, .groups = 2}, {{1, 4, 34, 35}}, {{norm}}, Mode::inference});
  check_against_oracle(
      {"deep sums", Conv{.channels = 3, .kernel = 1}, {{1, 700, 3, 3}}, {{norm}, {Add{}}}, Mode::inference});
  const std::vector<Link> whole_tail = {{norm}, {Add{}, 1}, {Relu{}}};
  check_against_oracle({"few columns", Conv{.channels = 9, .kernel = 1}, {{1, 20, 7, 7}}, whole_tail, Mode::inference});
  for (const int channels : {16, 32}) {
    const Conv grouped{.channels = channels, .kernel = 3, .pad = 1, .groups = 2};
    check_against_oracle({"vectors of filters", grouped, {{2, 16, 9, 11}}, whole_tail, Mode::inference});
  }
}

TEST_CASE("conv refuses unknown algorithms") {
  const Case c{"", Conv{.channels = 2, .kernel = 3}, {{1, 2, 5, 5}}};
  Spec spec = *make_spec(backend(), c, {.dtype = DType::f32});
  SECTION("with the known algorithms in the error") {
    for (const std::string& known : backend().algorithms(spec, Pass::backward_data)) {
      INFO(known);
      CHECK_THROWS_MATCHES(backend().lower(spec, {.algorithm = {"", "", "fastest"}}), UsageError,
                           Says("fastest", known));
    }
  }
  SECTION("in every pass") {
    CHECK_THROWS_AS(backend().lower(spec, {.algorithm = {"none", "", ""}}), UsageError);
    CHECK_THROWS_AS(backend().lower(spec, {.algorithm = {"", "none", ""}}), UsageError);
  }
}
