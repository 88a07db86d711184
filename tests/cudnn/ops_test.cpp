// Every op but convolution on a fake cuDNN: the calls of each pass, their order, descriptors and factors.

#include "tests/cudnn/bound.h"
#include "tests/support/catch.h"

using namespace lamina::test;
using CallTexts = std::vector<std::string>;

namespace {

/// The calls of one pass of a case.
CallTexts calls(FakeBackend& on, const Case& c, Pass pass, const Conditions& conditions = {.dtype = DType::f32}) {
  return BoundUnit(on, spec_of(on, c, conditions)).run(pass);
}

const std::string t = "f32 2x3x2x2 / 12 4 2 1";  // the descriptor of every tensor of 2x3x2x2
const Shape shape = {2, 3, 2, 2};

}  // namespace

TEST_CASE("cudnn: ReLU's gradient is masked by y, which is passed in place of x") {
  FakeBackend on;
  const Case c = {"", Relu{}, {shape}};
  const std::string relu = "ActivationDescriptor 1 1 0";
  CHECK(calls(on, c, Pass::forward) ==
        CallTexts{"ActivationForward(handle, " + relu + ", 1, " + t + ", x0, 0, " + t + ", y)"});
  CHECK(calls(on, c, Pass::recompute) == calls(on, c, Pass::forward));
  CHECK(calls(on, c, Pass::backward_data) == CallTexts{"ActivationBackward(handle, " + relu + ", 1, " + t + ", y, " +
                                                       t + ", dy, " + t + ", y, 0, " + t + ", dx0)"});
}

TEST_CASE("cudnn: sigmoid and tanh are calls of the library, and their gradients read x and y") {
  FakeBackend on;
  for (const auto& [op, mode] :
       {std::pair{Op{Pointwise{Function::sigmoid}}, "0"}, {Op{Pointwise{Function::tanh}}, "2"}}) {
    const Case c = {"", op, {shape}};
    const std::string activation = "ActivationDescriptor " + std::string(mode) + " 1 0";
    CHECK(calls(on, c, Pass::forward) ==
          CallTexts{"ActivationForward(handle, " + activation + ", 1, " + t + ", x0, 0, " + t + ", y)"});
    CHECK(calls(on, c, Pass::recompute) == calls(on, c, Pass::forward));
    CHECK(calls(on, c, Pass::backward_data, {.dtype = DType::f32, .adds = true}) ==
          CallTexts{"ActivationBackward(handle, " + activation + ", 1, " + t + ", y, " + t + ", dy, " + t +
                    ", x0, 1, " + t + ", dx0)"});
    const Lowered unit = on.backend.lower(spec_of(on, c), {});
    CHECK((unit.backward_reads_x[0] && unit.backward_reads_y));
  }
}

TEST_CASE("cudnn: softmax is over channels, with the accurate algorithm") {
  FakeBackend on;
  const Case c = {"", Softmax{}, {shape}};
  CHECK(calls(on, c, Pass::forward) == CallTexts{"SoftmaxForward(handle, 1, 1, 1, " + t + ", x0, 0, " + t + ", y)"});
  CHECK(calls(on, c, Pass::backward_data, {.dtype = DType::f32, .adds = true}) ==
        CallTexts{"SoftmaxBackward(handle, 1, 1, 1, " + t + ", y, " + t + ", dy, 1, " + t + ", dx0)"});
}

TEST_CASE("cudnn: a softmax along rows, or its logarithm, is a softmax over channels of a reshaped tensor") {
  FakeBackend on;
  const std::string rows = "f32 6x2x1x2 / 4 2 2 1";
  for (const bool log : {false, true}) {
    const Case c = {"", Softmax{.axis = Axis::row, .log = log}, {shape}};
    const std::string begin = "(handle, " + std::to_string(log ? 2 : 1) + ", 1, 1, " + rows;
    CHECK(calls(on, c, Pass::forward) == CallTexts{"SoftmaxForward" + begin + ", x0, 0, " + rows + ", y)"});
    CHECK(calls(on, c, Pass::backward_data, {.dtype = DType::f32, .adds = true}) ==
          CallTexts{"SoftmaxBackward" + begin + ", y, " + rows + ", dy, 1, " + rows + ", dx0)"});
  }
}

TEST_CASE("cudnn: LRN passes its parameters on unchanged, and refuses values that the library does not support") {
  FakeBackend on;
  const Case c = {"", Lrn{.size = 3, .alpha = 0.5, .beta = 0.75, .k = 2}, {shape}};
  const std::string lrn = "LRNDescriptor 3 0.5 0.75 2";
  CHECK(calls(on, c, Pass::forward) ==
        CallTexts{"LRNCrossChannelForward(handle, " + lrn + ", 0, 1, " + t + ", x0, 0, " + t + ", y)"});
  CHECK(calls(on, c, Pass::backward_data) == CallTexts{"LRNCrossChannelBackward(handle, " + lrn + ", 0, 1, " + t +
                                                       ", y, " + t + ", dy, " + t + ", x0, 0, " + t + ", dx0)"});
  for (const auto& [op, word] : {std::pair{Lrn{.size = 4}, "even size"},
                                 {Lrn{.size = 17}, "1 to 16"},
                                 {Lrn{.size = 5, .alpha = 1, .beta = 0}, "beta"},
                                 {Lrn{.size = 5, .alpha = 1, .beta = 1, .k = 1e-6}, "k from"}}) {
    const Spec spec = spec_of(on, {"", op, {shape}});
    CHECK_THROWS_MATCHES(on.backend.lower(spec, {}), Unsupported, Says(word));
  }
}

TEST_CASE("cudnn: max pooling uses the deterministic mode, and average pooling counts the padding if asked") {
  FakeBackend on;
  const Case c = {"", MaxPool{.window = {2, 1}, .stride = {1, 2}, .pad = {1, 0}}, {{2, 3, 2, 3}}};
  const std::string x = "f32 2x3x2x3 / 18 6 3 1", y = "f32 2x3x3x2 / 18 6 2 1", pool = "Pooling2dDescriptor ";
  CHECK(calls(on, c, Pass::forward) ==
        CallTexts{"PoolingForward(handle, " + pool + "3 1 2 1 1 0 1 2, 1, " + x + ", x0, 0, " + y + ", y)"});
  CHECK(calls(on, c, Pass::backward_data) == CallTexts{"PoolingBackward(handle, " + pool + "3 1 2 1 1 0 1 2, 1, " + y +
                                                       ", y, " + y + ", dy, " + x + ", x0, 0, " + x + ", dx0)"});
  for (const bool counts : {false, true}) {
    const Case mean = {
        "",
        AveragePool{.window = 2, .stride = 1, .pad = 1, .rounding = Rounding::down, .count_padding = counts},
        {shape}};
    const std::string mode = counts ? "1" : "2", means = "f32 2x3x3x3 / 27 9 3 1";
    CHECK(calls(on, mean, Pass::backward_data) ==
          CallTexts{"PoolingBackward(handle, " + pool + mode + " 1 2 2 1 1 1 1, 1, " + means + ", dy, " + means +
                    ", dy, " + t + ", dx0, 0, " + t + ", dx0)"});
  }
  CHECK(
      calls(on, {"", GlobalAveragePool{}, {shape}}, Pass::forward) ==
      CallTexts{"PoolingForward(handle, " + pool + "2 1 2 2 0 0 2 2, 1, " + t + ", x0, 0, f32 2x3x1x1 / 3 1 1 1, y)"});
}

TEST_CASE("cudnn: if the library refuses windows beyond the image, the pool runs on a padded copy") {
  const Case c = {"", MaxPool{.window = 3, .stride = 2, .pad = 0, .rounding = Rounding::up}, {{2, 3, 6, 4}}};
  const std::string x = "f32 2x3x6x4 / 72 24 4 1", y = "f32 2x3x3x2 / 18 6 2 1", whole = "f32 2x3x7x5 / 105 35 5 1",
                    image = "f32 2x3x6x4 / 105 35 5 1", pool = "Pooling2dDescriptor 3 1 3 3 0 0 2 2";
  FakeBackend on;
  BoundUnit taken(on, spec_of(on, c, {.dtype = DType::f32, .adds = true}));
  CHECK(taken.run(Pass::forward) ==
        CallTexts{"PoolingForward(handle, " + pool + ", 1, " + x + ", x0, 0, " + y + ", y)"});
  CHECK(taken.run(Pass::backward_data).size() == 1);
  CHECK(taken.lowered.steps[0].kernel->workspace_bytes() == 1024);  // 2 x 3 x 7 x 5 floats, aligned
  CHECK(taken.lowered.steps[2].kernel->workspace_bytes() == 2048);
  on.fake.name(static_cast<char*>(taken.args.workspace) + 1024, "second");

  const auto refuse_once = [&](const std::string& call) {
    on.fake.status.clear();
    on.fake.status[call] = 2000;
    CHECK_THROWS(taken.run(call == "PoolingForward" ? Pass::forward
                                                    : Pass::backward_data));  // the call on the copy is refused too
    on.fake.status.clear();
  };
  refuse_once("PoolingForward");
  const std::string fill = "SetTensor(handle, " + whole + ", workspace, -inf)",
                    copy = "TransformTensor(handle, 1, " + x + ", x0, 0, " + image + ", workspace)";
  CHECK(taken.run(Pass::forward) ==
        CallTexts{fill, copy, "PoolingForward(handle, " + pool + ", 1, " + whole + ", workspace, 0, " + y + ", y)"});
  CHECK(taken.run(Pass::backward_data) ==
        CallTexts{fill, copy,
                  "PoolingBackward(handle, " + pool + ", 1, " + y + ", y, " + y + ", dy, " + whole +
                      ", workspace, 0, " + whole + ", second)",
                  "TransformTensor(handle, 1, " + image + ", second, 1, " + x + ", dx0)"});

  BoundUnit late(on, spec_of(on, c));
  on.fake.status["PoolingBackward"] = 3000;
  CHECK_THROWS_AS(late.run(Pass::backward_data), Unsupported);
  on.fake.status.clear();
  CHECK(late.run(Pass::backward_data).size() == 4);
  BoundUnit nhwc(on, spec_of(on, c, {.dtype = DType::f32, .layout = Layout::nhwc}));
  on.fake.status["PoolingForward"] = 3000;
  CHECK_THROWS_AS(nhwc.run(Pass::forward), Unsupported);
  CHECK(on.fake.calls.back().find("f32 2x3x6x4 / 105 1 15 3, workspace)") != std::string::npos);
  BoundUnit f64(on, spec_of(on, c, {.dtype = DType::f64}));
  CHECK_THROWS_AS(f64.run(Pass::forward), Unsupported);
  CHECK(on.fake.calls.front().ends_with("workspace, -inf)"));
}

TEST_CASE("cudnn: average pools with windows beyond the padding are refused, by us or by the library") {
  FakeBackend on;
  AveragePool op{.window = 3, .stride = 2, .pad = 0, .rounding = Rounding::up, .count_padding = true};
  CHECK_THROWS_WITH(on.backend.lower(spec_of(on, {"", op, {{1, 1, 6, 6}}}), {}),
                    ContainsSubstring("beyond the padding"));
  op.count_padding = false;
  BoundUnit unit(on, spec_of(on, {"", op, {{1, 1, 6, 6}}}));
  CHECK(unit.run(Pass::forward).size() == 1);
  on.fake.status["PoolingForward"] = 3000;
  CHECK_THROWS_AS(unit.run(Pass::forward), Unsupported);
}

TEST_CASE("cudnn: batch norm is spatial, saves mean and deviation, and computes all gradients in one call") {
  FakeBackend on;
  Case c = {"", BatchNorm{.epsilon = 1e-3, .momentum = 0.25}, {shape}};
  const std::string channels = "f32 1x3x1x1 / 3 1 1 1";
  BoundUnit unit(on, spec_of(on, c));
  on.fake.name(static_cast<char*>(unit.args.saved) + 256, "deviation");
  CHECK(unit.run(Pass::forward) ==
        CallTexts{"BatchNormalizationForwardTraining(handle, 1, 1, 0, " + t + ", x0, " + t + ", y, " + channels +
                  ", w0, w1, 0.25, state0, state1, 0.001, saved, deviation)"});
  CHECK(unit.run(Pass::backward_data) == unit.run(Pass::backward_params));
  CHECK(unit.run(Pass::backward_params) ==
        CallTexts{"BatchNormalizationBackward(handle, 1, 1, 0, 1, 0, " + t + ", x0, " + t + ", dy, " + t + ", dx0, " +
                  channels + ", w0, dw0, dw1, 0.001, saved, deviation)"});

  BoundUnit adding(on, spec_of(on, c, {.dtype = DType::f32, .adds = true}));
  CHECK(adding.run(Pass::backward_params)[0].find("(handle, 1, 1, 1, 1, 1, ") != std::string::npos);

  c.mode = Mode::inference;
  CHECK(calls(on, c, Pass::forward) == CallTexts{"BatchNormalizationForwardInference(handle, 1, 1, 0, " + t + ", x0, " +
                                                 t + ", y, " + channels + ", w0, w1, state0, state1, 0.001)"});
}

TEST_CASE("cudnn: batch norm's per-channel tensors have the same descriptor in both layouts") {
  FakeBackend on;
  const Case c = {"", BatchNorm{}, {shape}};
  const Conditions nhwc{.dtype = DType::f32, .layout = Layout::nhwc};
  CHECK(calls(on, c, Pass::forward, nhwc).at(0).find("f32 2x3x2x2 / 12 1 6 3, y, f32 1x3x1x1 / 3 1 1 1, w0") !=
        std::string::npos);
  CHECK(calls(on, c, Pass::backward_params, nhwc).at(0).find("dx0, f32 1x3x1x1 / 3 1 1 1, w0") != std::string::npos);
}

TEST_CASE("cudnn: batch norm writes unwanted gradients to its workspace") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, {"", BatchNorm{}, {shape}}, {.dtype = DType::f32, .wants = {false}}));
  CHECK(unit.lowered.steps[1].kernel->workspace_bytes() == 3 * 256);
  on.fake.name(static_cast<char*>(unit.args.workspace) + 256, "second");
  on.fake.name(static_cast<char*>(unit.args.workspace) + 512, "third");
  unit.args.dw = {{}, {}};
  const std::string call = unit.run(Pass::backward_params).at(0);
  CHECK(call.find(t + ", third, f32 1x3x1x1") != std::string::npos);
  CHECK(call.find("w0, workspace, second, ") != std::string::npos);
}

TEST_CASE("cudnn: versions before 7.5 refuse an epsilon below 1e-5") {
  FakeBackend old(7402), young(7500);
  const Spec spec = spec_of(old, {"", BatchNorm{.epsilon = 1e-6}, {shape}});
  CHECK_NOTHROW(young.backend.lower(spec, {}));
  CHECK_THROWS_WITH(old.backend.lower(spec, {}), ContainsSubstring("7.4.2 takes 1e-5 or more"));
}

TEST_CASE(
    "cudnn: a sum of two is one call, each further operand adds one call, and the gradients are copies or no call") {
  FakeBackend on;
  const std::string add = "OpTensorDescriptor 0 0 1";
  const Case c = {"", Add{}, {shape, shape, shape}};
  BoundUnit unit(on, spec_of(on, c));
  CHECK(unit.run(Pass::forward) ==
        CallTexts{"OpTensor(handle, " + add + ", 1, " + t + ", x0, 1, " + t + ", x1, 0, " + t + ", y)",
                  "AddTensor(handle, 1, " + t + ", x2, 1, " + t + ", y)"});
  CHECK(unit.run(Pass::backward_data).size() == 3);
  CHECK(unit.lowered.y_may_alias_x == std::vector<bool>{true, true, false});

  unit.args.y = unit.args.x[1];  // the operand that y aliases comes first
  CHECK(unit.run(Pass::forward)[0].find("1, " + t + ", x1, 1, " + t + ", x0, 0, " + t + ", x1)") != std::string::npos);

  unit.args.dx[1] = unit.args.dy;  // a dx that aliases dy is written last, or needs no call
  CHECK(unit.run(Pass::backward_data) == CallTexts{"TransformTensor(handle, 1, " + t + ", dy, 0, " + t + ", dx0)",
                                                   "TransformTensor(handle, 1, " + t + ", dy, 0, " + t + ", dx2)"});
  for (const DType dtype : {DType::f32, DType::f64}) {
    BoundUnit adding(on, spec_of(on, c, {.dtype = dtype, .adds = true}));
    adding.args.dx[0] = adding.args.dy;
    const CallTexts made = adding.run(Pass::backward_data);
    REQUIRE(made.size() == 3);
    CHECK(made[0].find("dy, 1, ") != std::string::npos);
    CHECK(made[2].ends_with(", dy, 2)"));
    CHECK(made[2].starts_with("ScaleTensor"));
  }
}

TEST_CASE("cudnn: a fully connected op multiplies by the cuBLAS of the CUDA version that cuDNN was built for") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    FakeBackend on;
    BoundUnit unit(on, spec_of(on, {"", FullyConnected{.outputs = 2}, {{2, 3, 1, 1}}}, {.dtype = dtype}));
    CHECK(on.log.cuda_major == 13);
    put(on, unit.args.x[0], {1, 2, 3, 4, 5, 6});
    put(on, unit.args.w[0], {1, 0, 2, 0, 1, 1});
    put(on, unit.args.dy, {1, 2, 3, 4});
    CHECK(unit.run(Pass::forward).at(0).starts_with("AddTensor(handle, 1, "));
    CHECK(get(on, unit.args.y) == std::vector<double>{7, 5, 16, 11});
    CHECK(unit.run(Pass::backward_params).at(0).starts_with("ConvolutionBackwardBias(handle, 1, "));
    CHECK(get(on, unit.args.dw[0]) == std::vector<double>{13, 17, 21, 18, 24, 30});
    CHECK(unit.run(Pass::backward_data).empty());
    CHECK(get(on, unit.args.dx[0]) == std::vector<double>{1, 2, 4, 3, 4, 10});
    unit.args.dx[0] = {}, unit.args.dw = {{}, {}};
    CHECK(unit.run(Pass::backward_params).empty());
    CHECK(unit.run(Pass::backward_data).empty());
  }
}
