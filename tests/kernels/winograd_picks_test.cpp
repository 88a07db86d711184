// The convolutions that take winograd_4x4 by default, forward and for the data gradient, and the cost model that
// decides.

#include "kernels/winograd/conv_winograd_4x4.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::cuda_host;
using namespace lamina::test;

TEST_CASE("Winograd is picked if its cost model is lower than implicit gemm's: VGG-16, ResNet-18 and Inception") {
  const auto backend = make_backend("cuda-host");
  struct Layer {
    const char* name;
    int channels, filters, pixels;
    bool forward, data;
  };
  // Some layers do not take winograd_4x4: conv1_1 has few channels, and other layers have few tiles.
  const Layer layers[] = {
      {"VGG-16 conv1_1", 3, 64, 224, false, true},    {"VGG-16 conv1_2", 64, 64, 224, true, true},
      {"VGG-16 conv2_1", 64, 128, 112, true, true},   {"VGG-16 conv3_2", 256, 256, 56, true, true},
      {"VGG-16 conv4_2", 512, 512, 28, true, true},   {"VGG-16 conv5", 512, 512, 14, true, true},
      {"ResNet-18 layer1", 64, 64, 56, true, true},   {"ResNet-18 layer2", 128, 128, 28, true, true},
      {"ResNet-18 layer3", 256, 256, 14, true, true}, {"ResNet-18 layer4", 512, 512, 7, false, false},
      {"Inception conv2", 64, 192, 56, true, true},   {"Inception 3a", 96, 128, 28, true, true},
      {"Inception 4a", 96, 208, 14, true, false},     {"Inception 4e", 160, 320, 14, true, false},
      {"Inception 5a", 160, 320, 7, false, false},    {"Inception 5b", 192, 384, 7, false, false}};
  for (const Layer& l : layers) {
    INFO(l.name);
    const Conv op{.channels = l.filters, .kernel = 3, .pad = 1};
    const Spec spec = *make_spec(*backend, {"", op, {{16, l.channels, l.pixels, l.pixels}}}, {.dtype = DType::f32});
    CHECK(backend->algorithms(spec, Pass::forward).front() == (l.forward ? "winograd_4x4" : "implicit_gemm"));
    CHECK(backend->algorithms(spec, Pass::backward_data).front() == (l.data ? "winograd_4x4" : "implicit_gemm"));
  }
}

TEST_CASE("Winograd's cost model counts rounds of blocks, and the transform of filters that are not prepared") {
  CHECK(winograd_4x4_cycles({1, 512, 512}, 16, 7, 7) == 256 * 1014 + 5500);       // 32 blocks, one round
  CHECK(winograd_4x4_cycles({1, 64, 64}, 16, 56, 56) == 2 * (32 * 1014 + 5500));  // 196 blocks, two rounds
  CHECK(winograd_4x4_cycles({1, 64, 65}, 16, 56, 57) == 2 * (33 * 1014 + 5500));  // 210 blocks
  CHECK(winograd_4x4_cycles({4, 33, 1}, 1, 32, 32) == 1014 + 5500);               // 16 blocks
  CHECK(winograd_4x4_filter_cycles({2, 512, 512}) == 2000 + 2 * 512 * 512 * 180 / (22 * 132));

  // Prepared filters need no transform, so inference picks Winograd for some shapes for which training does not.
  const auto backend = make_backend("cuda-host");
  const auto first = [&](int channels, Mode mode) {
    const Conv op{.channels = 256, .kernel = 3, .pad = 1};
    const Spec spec = *make_spec(*backend, {"", op, {{16, channels, 14, 14}}, {}, mode}, {.dtype = DType::f32});
    return backend->algorithms(spec, Pass::forward).front();
  };
  int inference_alone = 0;
  for (int channels = 8; channels <= 512; channels += 8) {
    const bool prepared = first(channels, Mode::inference) == "winograd_4x4";
    const bool transformed = first(channels, Mode::training) == "winograd_4x4";
    CHECK((prepared || !transformed));
    inference_alone += prepared && !transformed ? 1 : 0;
  }
  CHECK(inference_alone > 0);
}

TEST_CASE("Winograd is not picked in f64, with a limit on the error, or if its blocks would be almost empty") {
  const auto backend = make_backend("cuda-host");
  const auto picks = [&](const Conv& op, const Shape& x, const Choice& choice, DType dtype = DType::f32) {
    const Spec spec = *make_spec(*backend, {"", op, {x}, {}, Mode::inference}, {.dtype = dtype});
    return backend->lower(spec, choice).steps[0].algorithm == "winograd_4x4";
  };
  const Conv op{.channels = 64, .kernel = 3, .pad = 1};
  CHECK(picks(op, {16, 64, 56, 56}, {}));
  CHECK_FALSE(picks(op, {16, 64, 7, 7}, {}));
  CHECK_FALSE(picks(op, {16, 3, 56, 56}, {}));
  CHECK_FALSE(picks({.channels = 64, .kernel = 3, .pad = 1, .groups = 32}, {16, 64, 56, 56}, {}));
  CHECK_FALSE(picks(op, {16, 64, 56, 56}, {.max_error = 1}));
  CHECK_FALSE(picks(op, {16, 64, 56, 56}, {}, DType::f64));
}
