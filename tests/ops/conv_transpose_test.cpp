// Transposed convolution: by hand, compared with the oracle, in whole numbers, by differences, and its algorithms.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case> transposed_cases = {
    {"1x1", ConvTranspose{.channels = 5, .kernel = 1}, {{2, 3, 4, 5}}},
    {"3x3, padded", ConvTranspose{.channels = 17, .kernel = 3, .pad = 1, .bias = false}, {{2, 9, 8, 9}}},
    {"5x5, padded", ConvTranspose{.channels = 3, .kernel = 5, .pad = 2}, {{2, 4, 6, 5}}},
    {"2x2 of U-Net", ConvTranspose{.channels = 4, .kernel = 2, .stride = 2}, {{2, 8, 5, 4}}},
    {"4x4 of DCGAN", ConvTranspose{.channels = 6, .kernel = 4, .stride = 2, .pad = 1, .bias = false}, {{2, 12, 4, 4}}},
    {"first layer of DCGAN", ConvTranspose{.channels = 9, .kernel = 4}, {{3, 20, 1, 1}}},
    {"output pad", ConvTranspose{.channels = 3, .kernel = 3, .stride = 2, .pad = 1, .output_pad = 1}, {{2, 4, 3, 5}}},
    {"long stride", ConvTranspose{.channels = 2, .kernel = 2, .stride = 3, .output_pad = {2, 0}}, {{2, 3, 3, 4}}},
    {"rectangular",
     ConvTranspose{.channels = 4,
                   .kernel = {3, 2},
                   .stride = {3, 1},
                   .pad = {1, 0},
                   .output_pad = {2, 0},
                   .dilation = {2, 1},
                   .groups = 2},
     {{2, 6, 3, 4}}},
    {"depthwise", ConvTranspose{.channels = 5, .kernel = 3, .stride = 2, .pad = 1, .groups = 5}, {{2, 5, 5, 4}}},
    {"inference", ConvTranspose{.channels = 3, .kernel = 3, .pad = 1}, {{2, 4, 6, 7}}, {}, Mode::inference},
    {"inference, grouped",
     ConvTranspose{.channels = 4, .kernel = 3, .stride = 2, .groups = 2},
     {{1, 4, 4, 3}},
     {},
     Mode::inference},
};

}  // namespace

TEST_CASE("conv_transpose, by hand: each x is multiplied by the window, and overlapping windows are added") {
  const Case c{"", ConvTranspose{.channels = 1, .kernel = {1, 3}, .stride = 2}, {{1, 1, 1, 2}}};
  check_example(c, {{{2, 3}}, {{1, 10, 100}, {5}}, {}, {1, 2, 3, 4, 5}},
                {{7, 25, 208, 35, 305}, {{1 + 20 + 300, 3 + 40 + 500}}, {{2 + 9, 4 + 12, 6 + 15}, {15}}});
}

TEST_CASE("conv_transpose, by hand: pads cut both ends, and output_pad adds to the end") {
  const Case c{
      "",
      ConvTranspose{
          .channels = 1, .kernel = {1, 2}, .stride = {1, 3}, .pad = {0, 1}, .output_pad = {0, 2}, .bias = false},
      {{1, 1, 1, 2}}};
  check_example(c, {{{2, 3}}, {{1, 10}}, {}, {1, 2, 3, 4, 5}}, {{20, 0, 3, 30, 0}, {{10, 3 + 40}}, {{9, 2 + 12}}});
}

TEST_CASE("conv_transpose, by hand: weights are ordered by input channel, then by output channel of the group") {
  const Case c{"", ConvTranspose{.channels = 4, .kernel = 1, .groups = 2, .bias = false}, {{1, 2, 1, 1}}};
  check_example(c, {{{1, 10}}, {{1, 2, 3, 4}}, {}, {1, 1, 1, 2}}, {{1, 2, 30, 40}, {{3, 11}}, {{1, 1, 10, 20}}});
}

TEST_CASE("conv_transpose agrees with the oracle") { check_all_against_oracle(transposed_cases); }

TEST_CASE("conv_transpose is exact in whole numbers") { check_all_integers(transposed_cases); }

TEST_CASE("conv_transpose has the gradients of its differences") { check_all_differences(transposed_cases); }

TEST_CASE("conv_transpose has a convolution's algorithms, with forward and backward data exchanged") {
  const Case c{"", ConvTranspose{.channels = 2, .kernel = 3}, {{1, 2, 5, 5}}};
  const Case conv{"", Conv{.channels = 2, .kernel = 3, .bias = false}, {{1, 2, 7, 7}}};
  const Spec spec = *make_spec(backend(), c, {.dtype = DType::f32});
  const Spec of = *make_spec(backend(), conv, {.dtype = DType::f32});
  CHECK(backend().algorithms(spec, Pass::forward) == backend().algorithms(of, Pass::backward_data));
  CHECK(backend().algorithms(spec, Pass::backward_params) == backend().algorithms(of, Pass::backward_params));
  CHECK(backend().algorithms(spec, Pass::backward_data) == backend().algorithms(of, Pass::forward));
  for (std::size_t pass = 0; pass < 3; ++pass) {
    Choice choice;
    choice.algorithm[pass] = "fastest";
    CHECK_THROWS_MATCHES(backend().lower(spec, choice), UsageError, Says("fastest"));
  }
}
