// Convolutions on a fake cuDNN: the calls of each pass, their descriptors, factors and memory.

#include "tests/cudnn/bound.h"
#include "tests/support/catch.h"

using namespace lamina::test;
using CallTexts = std::vector<std::string>;

namespace {

const Case grouped = {
    "",
    Conv{.channels = 4, .kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 0}, .dilation = {1, 2}, .groups = 2},
    {{2, 6, 5, 5}}};
const Case with_relu = {"", Conv{.channels = 4, .kernel = 1}, {{2, 3, 2, 2}}, {{Relu{}}}};

Choice by_name(const std::string& forward, const std::string& params, const std::string& data) {
  return {.algorithm = {forward, params, data}};
}

}  // namespace

TEST_CASE("cudnn: a convolution's calls carry its geometry, groups, math, algorithm, workspace and beta 0") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, grouped), by_name("implicit_precomp_gemm", "algo_3", "algo_1"));
  const std::string x = "f32 2x6x5x5 / 150 25 5 1", w = "f32 filter 4x3x3x2", y = "f32 2x4x3x3 / 36 9 3 1";
  const std::string conv = "Convolution2dDescriptor 1 0 2 1 1 2 1 0, ConvolutionGroupCount 2, ConvolutionMathType 3";
  CHECK(unit.run(Pass::forward) == CallTexts{"ConvolutionForward(handle, 1, " + x + ", x0, " + w + ", w0, " + conv +
                                                 ", 1, workspace, 200, 0, " + y + ", y)",
                                             "AddTensor(handle, 1, f32 1x4x1x1 / 4 1 1 1, w1, 1, " + y + ", y)"});
  CHECK(unit.run(Pass::backward_params) ==
        CallTexts{"ConvolutionBackwardFilter(handle, 1, " + x + ", x0, " + y + ", dy, " + conv +
                      ", 3, workspace, 400, 0, " + w + ", dw0)",
                  "ConvolutionBackwardBias(handle, 1, " + y + ", dy, 0, f32 1x4x1x1 / 4 1 1 1, dw1)"});
  CHECK(unit.run(Pass::backward_data) == CallTexts{"ConvolutionBackwardData(handle, 1, " + w + ", w0, " + y + ", dy, " +
                                                   conv + ", 1, workspace, 200, 0, " + x + ", dx0)"});
}

TEST_CASE("cudnn: gradients are added with beta 1, and in f64 the factors are f64") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, grouped, {.dtype = DType::f64, .adds = true}));
  for (const Pass pass : {Pass::backward_params, Pass::backward_data})
    for (const std::string& call : unit.run(pass)) {
      INFO(call);
      CHECK(call.find("(handle, 1, f64 ") != std::string::npos);
      CHECK((call.find("00, 1, f64") != std::string::npos || call.find("dy, 1, f64") != std::string::npos));
    }
  CHECK(unit.run(Pass::forward)[0].find(", 0, f64") != std::string::npos);
}

TEST_CASE("cudnn: a convolution with bias and ReLU is three calls by default, and one call by a fused algorithm") {
  FakeBackend on;
  const Spec spec = spec_of(on, with_relu);
  BoundUnit by_rule(on, spec);
  CHECK(by_rule.lowered.steps[0].algorithm == "implicit_gemm");
  by_rule.run(Pass::forward);
  CHECK(on.fake.names() == CallTexts{"ConvolutionForward", "AddTensor", "ActivationForward"});
  CHECK(on.fake.calls[2].find("ActivationDescriptor 1 1 0") != std::string::npos);

  BoundUnit unit(on, spec, by_name("implicit_precomp_gemm+fused", "", ""));
  CHECK(unit.lowered.steps[0].algorithm == "implicit_precomp_gemm+fused");
  CHECK(unit.lowered.steps[0].kernel->workspace_bytes() == 200);
  const CallTexts fused = unit.run(Pass::forward);
  REQUIRE(fused.size() == 1);
  CHECK(
      fused[0] ==
      "ConvolutionBiasActivationForward(handle, 1, f32 2x3x2x2 / 12 4 2 1, x0, f32 filter 4x3x1x1, w0, "
      "Convolution2dDescriptor 0 0 1 1 1 1 1 0, ConvolutionGroupCount 1, ConvolutionMathType 3, 1, workspace, 200, 0, "
      "f32 2x4x2x2 / 16 4 2 1, y, f32 1x4x1x1 / 4 1 1 1, w1, ActivationDescriptor 1 0 0, f32 2x4x2x2 / 16 4 2 1, y)");

  CHECK_FALSE(make_spec(on.backend, with_relu, {.dtype = DType::f64}).has_value());
  Case without = with_relu;
  std::get<Conv>(without.op).bias = false;
  CHECK_FALSE(make_spec(on.backend, without, {.dtype = DType::f32}).has_value());
}

TEST_CASE(
    "cudnn: each algorithm of a unit with bias and ReLU has a fused variant, and other units have no fused variants") {
  FakeBackend on;
  const Spec spec = spec_of(on, with_relu), alone = spec_of(on, grouped);
  const std::vector<std::string> names = on.backend.algorithms(spec, Pass::forward);
  CHECK(names.size() == 16);
  for (std::size_t i = 0; i < 8; ++i) CHECK(names[8 + i] == names[i] + "+fused");
  CHECK(on.backend.algorithms(spec, Pass::backward_data).size() == 6);
  CHECK(on.backend.algorithms(alone, Pass::forward).size() == 8);
  CHECK_THROWS_AS(on.backend.lower(alone, by_name("gemm+fused", "", "")), UsageError);
  CHECK_THROWS_WITH(on.backend.lower(spec, by_name("gem+fused", "", "")), ContainsSubstring("winograd_nonfused+fused"));
  on.log.unavailable = "no GPU here";
  CHECK(on.backend.lower(spec, by_name("gemm+fused", "", "")).steps[0].algorithm == "gemm+fused");
}

TEST_CASE(
    "cudnn: a fused call that the library refuses, with any status, is Unsupported, but a failed call is a "
    "DeviceError") {
  for (const auto& [version, not_supported, bad_parameter, failure] :
       {std::tuple{std::size_t{91900}, 3000, 2000, 5000}, {std::size_t{8907}, 9, 3, 8}}) {
    FakeBackend on(version);
    BoundUnit unit(on, spec_of(on, with_relu), by_name("gemm+fused", "", ""));
    const auto answers = [&](cudnn::Status status) { on.fake.status["ConvolutionBiasActivationForward"] = status; };
    for (const cudnn::Status status : {not_supported, bad_parameter}) {
      answers(status);
      CHECK_THROWS_MATCHES(unit.run(Pass::forward), Unsupported,
                           Says("refuses gemm+fused", "(" + std::to_string(status) + ")", "without +fused"));
      CHECK(on.fake.names().empty());  // no other call was made
    }
    answers(failure);
    CHECK_THROWS_AS(unit.run(Pass::forward), DeviceError);
    answers(0);
    CHECK_NOTHROW(unit.run(Pass::forward));
  }
}

TEST_CASE("cudnn: a version without the fused call refuses fused names, and runs all other algorithms") {
  FakeBackend on;
  on.fake.api.ConvolutionBiasActivationForward = nullptr;
  BoundUnit unit(on, spec_of(on, with_relu));
  CHECK(unit.run(Pass::forward).size() == 3);
  CHECK_THROWS_AS(on.backend.lower(spec_of(on, with_relu), by_name("gemm+fused", "", "")), Unsupported);
}

TEST_CASE("cudnn: a fused ReLU masks dy once, and both gradients read the masked dy") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, with_relu));
  CHECK(unit.lowered.backward_reads_y);
  CHECK(unit.lowered.scratch_bytes == 2 * 4 * 2 * 2 * sizeof(float));
  const std::string y = "f32 2x4x2x2 / 16 4 2 1";
  const CallTexts params = unit.run(Pass::backward_params);
  REQUIRE(params.size() == 3);
  CHECK(params[0] == "ActivationBackward(handle, ActivationDescriptor 1 1 0, 1, " + y + ", y, " + y + ", dy, " + y +
                         ", y, 0, " + y + ", scratch)");
  CHECK(params[1].find(y + ", scratch") != std::string::npos);
  CHECK(params[2].find(y + ", scratch") != std::string::npos);
  const CallTexts data = unit.run(Pass::backward_data);
  REQUIRE(data.size() == 1);
  CHECK(data[0].find(y + ", scratch") != std::string::npos);
}

TEST_CASE("cudnn: if y and dy have different strides, the mask is applied to a copy of dy with the strides of y") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, with_relu, {.dtype = DType::f32, .pitched = true}));
  const CallTexts params = unit.run(Pass::backward_params);
  REQUIRE(params.size() == 4);
  CHECK(params[0].starts_with("TransformTensor(handle, 1, "));
  CHECK(params[0].ends_with(", scratch)"));
  CHECK(params[1].find(", scratch, ") < params[1].find(", y, 0, "));
}

TEST_CASE("cudnn: in nhwc, tensors have the strides and filters the format of nhwc") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, grouped, {.dtype = DType::f32, .layout = Layout::nhwc}));
  const std::string call = unit.run(Pass::forward)[0];
  CHECK(call.find("f32 2x6x5x5 / 150 1 30 6") != std::string::npos);
  CHECK(call.find("f32 filter 4x3x3x2 nhwc") != std::string::npos);
}

TEST_CASE("cudnn: for an unwanted data gradient, no algorithm is queried and nothing is computed") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, grouped, {.dtype = DType::f32, .wants = {false}}));
  CHECK(unit.run(Pass::backward_data).empty());
  BoundUnit wanted(on, spec_of(on, grouped));
  wanted.args.dx[0] = {};
  wanted.args.dw[0] = {};
  CHECK(wanted.run(Pass::backward_data).empty());
  wanted.run(Pass::backward_params);
  CHECK(on.fake.names() == CallTexts{"ConvolutionBackwardBias"});
}

TEST_CASE("cudnn: a call that the library refuses at run time is Unsupported, with the call, status and version") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, grouped, {.dtype = DType::f32, .adds = true}), by_name("", "", "fft"));
  on.fake.status["ConvolutionBackwardData"] = 3000;
  on.fake.last_error = "beta must be 0\n";
  CHECK_THROWS_MATCHES(unit.run(Pass::backward_data), Unsupported,
                       Says("cuDNN 9.19.0: cudnnConvolutionBackwardData gave "
                            "CUDNN_STATUS_NOT_SUPPORTED (3000): beta must be 0 [conv.cpp:"));
}
