// f16 and bf16 on a fake cuDNN that refuses types that the manual does not list: the calls, the half-precision copies
// of parameters, and the addition of half-precision gradients to f32 gradients.

#include "lamina/plan.h"
#include "lib/backends/cudnn/library/common.h"
#include "tests/cudnn/bound.h"
#include "tests/support/catch.h"

using namespace lamina::test;
using CallTexts = std::vector<std::string>;

namespace {

constexpr DType both_halves[] = {DType::f16, DType::bf16};

Conditions in(DType dtype, Layout layout = Layout::nchw, bool adds = false) {
  return {.dtype = dtype, .layout = layout, .adds = adds};
}

}  // namespace

TEST_CASE("cudnn: every op that cuDNN supports in half precision calls it with types that the manual lists") {
  for (const std::size_t version : {8907, 91900})
    for (const DType dtype : both_halves)
      for (const Layout layout : {Layout::nchw, Layout::nhwc})
        for (const Case& c : cases()) {
          const bool in_f32 = std::holds_alternative<Recurrent>(c.op);
          if (in_f32 || (layout == Layout::nhwc && std::holds_alternative<Lrn>(c.op))) continue;
          FakeBackend on(version);
          INFO(to_string(c) << ", " << to_string(dtype) << ' ' << to_string(layout) << ' ' << version);
          BoundUnit unit(on, spec_of(on, c, in(dtype, layout)));
          for (const Pass pass :
               {Pass::prepare, Pass::forward, Pass::recompute, Pass::backward_params, Pass::backward_data}) {
            CHECK_NOTHROW(unit.run(pass));
            for (const std::string& call : on.fake.calls) {
              INFO(call);
              CHECK((call.find("f32 ") == std::string::npos || call.starts_with("BatchNormalization")));
            }
          }
        }
}

TEST_CASE("cudnn: the fake refuses types that the manual does not list") {
  FakeBackend on;
  const cudnn::Api& api = on.fake.api;
  on.backend.device();
  const auto tensor = [&](DType dtype, const Shape& shape = {1, 4, 1, 1}) {
    return cudnn::describe(api, shape, dtype, Layout::nchw, shape.image());
  };
  const auto half = tensor(DType::f16), wide = tensor(DType::f32), other = tensor(DType::bf16);
  const float one = 1, zero = 0;
  std::array<float, 8> x{}, y{};
  const auto copies = [&](const cudnn::TensorDescriptor& from, const cudnn::TensorDescriptor& to) {
    return api.TransformTensor(nullptr, &one, from.get(), x.data(), &zero, to.get(), y.data());
  };
  CHECK(copies(half, half) == cudnn::ok);
  CHECK(copies(half, wide) == 2000);
  CHECK_THAT(on.fake.last_error, ContainsSubstring("several types"));
  CHECK(copies(half, other) == 2000);
  const auto norm = [&](const cudnn::TensorDescriptor& value, const cudnn::TensorDescriptor& parameters) {
    return api.BatchNormalizationForwardInference(nullptr, 1, &one, &zero, value.get(), x.data(), value.get(), y.data(),
                                                  parameters.get(), x.data(), x.data(), x.data(), x.data(), 1e-5);
  };
  CHECK(norm(half, wide) == cudnn::ok);
  CHECK(norm(half, half) == 2000);
  CHECK(norm(wide, half) == 2000);
  FakeBackend old(8005);
  CHECK_THROWS_WITH(cudnn::describe(old.fake.api, {1, 1, 1, 1}, DType::bf16, Layout::nchw, 1),
                    ContainsSubstring("cudnnSetTensor4dDescriptorEx"));
}

#if defined(LAMINA_CUDA_ON_HOST)  // numbers are converted and biases added by the kernels for the host

namespace {

/// A tensor with one row of numbers at this address.
Tensor row(void* data, int count, DType dtype) { return {data, {1, count, 1, 1}, dtype, Layout::nchw, count}; }

std::vector<double> counted(int count) {
  std::vector<double> values;
  for (int i = 1; i <= count; ++i) values.push_back(i);
  return values;
}

std::byte* at(void* data, std::size_t bytes) { return static_cast<std::byte*>(data) + bytes; }

}  // namespace

TEST_CASE("cudnn: a half-precision convolution reads a half copy of its filter, and adds to f32 gradients") {
  for (const DType dtype : both_halves) {
    FakeBackend on;
    const Conditions conditions = in(dtype, Layout::nchw, true);
    BoundUnit unit(on, spec_of(on, {"", Conv{.channels = 2, .kernel = 1}, {{1, 3, 2, 2}}}, conditions));
    const std::string t(to_string(dtype)),
        x = t + " 1x3x2x2 / 12 4 2 1", y = t + " 1x2x2x2 / 8 4 2 1", w = t + " filter 2x3x1x1",
        conv = "Convolution2dDescriptor 0 0 1 1 1 1 1 0, ConvolutionGroupCount 1, ConvolutionMathType 3";
    on.fake.name(at(unit.args.workspace, 256), "half dw");
    put(on, unit.args.w[0], {1, 2, 3, 4, 5, 1 + 0x1p-12});
    put(on, unit.args.w[1], {0.5, 0.25});
    CHECK(unit.lowered.prepared_bytes == 256);
    CHECK(unit.run(Pass::prepare).empty());
    CHECK(get(on, row(unit.args.prepared, 6, dtype)) == std::vector<double>{1, 2, 3, 4, 5, 1});
    put(on, unit.args.y, {1, 2, 3, 4, 5, 6, 7, 8});
    CHECK(unit.run(Pass::forward) == CallTexts{"ConvolutionForward(handle, 1, " + x + ", x0, " + w + ", prepared, " +
                                               conv + ", 0, workspace, 100, 0, " + y + ", y)"});
    CHECK(get(on, unit.args.y) == std::vector<double>{1.5, 2.5, 3.5, 4.5, 5.25, 6.25, 7.25, 8.25});

    put(on, row(at(unit.args.workspace, 256), 6, dtype), counted(6));
    put(on, unit.args.dw[0], {0x1p-20, 0, 0, 0, 0, 10});
    put(on, unit.args.dw[1], {100, 0});
    put(on, unit.args.dy, counted(8));
    CHECK(unit.run(Pass::backward_params) ==
          CallTexts{"ConvolutionBackwardFilter(handle, 1, " + x + ", x0, " + y + ", dy, " + conv +
                    ", 0, workspace, 100, 0, " + w + ", half dw)"});
    CHECK(get(on, unit.args.dw[0]) == std::vector<double>{1 + 0x1p-20, 2, 3, 4, 5, 16});
    CHECK(get(on, unit.args.dw[1]) == std::vector<double>{110, 26});
    CHECK(unit.run(Pass::backward_data) == CallTexts{"ConvolutionBackwardData(handle, 1, " + w + ", prepared, " + y +
                                                     ", dy, " + conv + ", 0, workspace, 100, 1, " + x + ", dx0)"});
    CHECK(unit.lowered.steps[1].kernel->workspace_bytes() == 512);
  }
}

TEST_CASE("cudnn: a ReLU after a half-precision convolution is computed with the bias, and masks every gradient") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, {"", Conv{.channels = 2, .kernel = 1}, {{1, 3, 1, 2}}, {{Relu{}}}}, in(DType::f16)));
  put(on, unit.args.w[1], {0.5, -2});
  put(on, unit.args.y, {-1, 1, 3, 1});
  CHECK(unit.run(Pass::forward).size() == 1);
  CHECK(get(on, unit.args.y) == std::vector<double>{0, 1.5, 1, 0});
  put(on, row(unit.args.scratch, 4, DType::f16), {0, 5, 7, 0});  // the masked dy, which the library would write
  const CallTexts params = unit.run(Pass::backward_params);
  REQUIRE(params.size() == 2);
  CHECK(params[0].starts_with("ActivationBackward("));
  CHECK_THAT(params[1], ContainsSubstring("f16 1x2x1x2 / 4 2 2 1, scratch"));
  CHECK(get(on, unit.args.dw[1]) == std::vector<double>{5, 7});
  CHECK_THAT(unit.run(Pass::backward_data).at(0), ContainsSubstring("scratch"));
}

TEST_CASE("cudnn: a half-precision convolution takes the math of the library's answer, or else tensor cores") {
  FakeBackend on;
  const Case c = {"", Conv{.channels = 2, .kernel = 1}, {{1, 8, 2, 2}}};
  for (const int math : {cudnn::math_type::tensor_op, cudnn::math_type::standard, cudnn::math_type::fma}) {
    on.fake.answers[Pass::forward] = {result(1, 0, math)};
    BoundUnit unit(on, spec_of(on, c, in(DType::f16)));
    CHECK(unit.lowered.steps[0].math == Math::strict);
    CHECK_THAT(unit.run(Pass::forward).at(0), ContainsSubstring("ConvolutionMathType " + std::to_string(math)));
  }
  BoundUnit named(on, spec_of(on, c, in(DType::f16)), {.algorithm = {"gemm", "", ""}});  // gemm has no answer
  CHECK_THAT(named.run(Pass::forward).at(0), ContainsSubstring("ConvolutionMathType 1"));
  on.fake.answers[Pass::forward] = {result(1, 0, cudnn::math_type::allow_conversion)};
  CHECK_THROWS_WITH(on.backend.lower(spec_of(on, c, in(DType::bf16)), {}), ContainsSubstring("round to 16 bits"));
}

TEST_CASE("cudnn: in nhwc a first layer in half precision is padded to 8 channels, by copies of its filter and of x") {
  FakeBackend on;
  Conditions conditions = in(DType::f16, Layout::nhwc);
  conditions.wants = {false};
  const Case c = {"", Conv{.channels = 2, .kernel = 1, .bias = false}, {{1, 3, 2, 2}}};
  BoundUnit unit(on, spec_of(on, c, conditions));
  CHECK(unit.lowered.prepared_bytes == 256);
  CHECK(unit.lowered.steps[0].kernel->workspace_bytes() == 2 * 256);  // the library's workspace and the copy of x
  CHECK(unit.lowered.steps[1].kernel->workspace_bytes() == 3 * 256);  // in addition the gradient of the filter
  on.fake.name(at(unit.args.workspace, 256), "copy");
  on.fake.name(at(unit.args.workspace, 512), "half dw");
  const std::string whole = "f16 1x8x2x2 / 32 1 16 8", part = "f16 1x3x2x2 / 32 1 16 8", x = "f16 1x3x2x2 / 12 1 6 3",
                    y = "f16 1x2x2x2 / 8 1 4 2", w = "f16 filter 2x8x1x1 nhwc";
  const CallTexts copy = {"SetTensor(handle, " + whole + ", copy, 0)",
                          "TransformTensor(handle, 1, " + x + ", x0, 0, " + part + ", copy)"};
  put(on, row(unit.args.prepared, 16, DType::f16), std::vector<double>(16, 9));
  put(on, unit.args.w[0], counted(6));
  unit.run(Pass::prepare);
  CHECK(get(on, row(unit.args.prepared, 16, DType::f16)) ==
        std::vector<double>{1, 2, 3, 0, 0, 0, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0});
  const CallTexts forward = unit.run(Pass::forward);
  REQUIRE(forward.size() == 3);
  CHECK(CallTexts(forward.begin(), forward.begin() + 2) == copy);
  CHECK_THAT(forward[2], ContainsSubstring(whole + ", copy, " + w + ", prepared") && ContainsSubstring(y + ", y"));
  put(on, row(at(unit.args.workspace, 512), 16, DType::f16), counted(16));
  const CallTexts params = unit.run(Pass::backward_params);
  REQUIRE(params.size() == 3);
  CHECK(CallTexts(params.begin(), params.begin() + 2) == copy);
  CHECK_THAT(params[2], ContainsSubstring(whole + ", copy, " + y) && ContainsSubstring(w + ", half dw)"));
  CHECK(get(on, unit.args.dw[0]) == std::vector<double>{1, 2, 3, 9, 10, 11});

  const auto channels_of = [&](Conditions others, const Conv& conv, int channels) {
    BoundUnit other(on, spec_of(on, {"", conv, {{1, channels, 2, 2}}}, others));
    other.run(Pass::forward);
    return on.fake.names().front() != "SetTensor";
  };
  CHECK(channels_of(in(DType::f16, Layout::nhwc), {.channels = 2, .kernel = 1}, 3));  // its dx is wanted
  conditions.layout = Layout::nchw;
  CHECK(channels_of(conditions, {.channels = 2, .kernel = 1}, 3));
  conditions.layout = Layout::nhwc;
  CHECK(channels_of(conditions, {.channels = 2, .kernel = 1}, 12));
  CHECK(channels_of(conditions, {.channels = 2, .kernel = 1, .groups = 2}, 4));
  conditions.dtype = DType::f32;
  CHECK(channels_of(conditions, {.channels = 2, .kernel = 1}, 3));
}

TEST_CASE("cudnn: a batch norm is folded into a filter in f32, and the folded filter is rounded to half precision") {
  FakeBackend on;
  const Case c = {"", Conv{.channels = 4, .kernel = 1}, {{2, 3, 2, 2}}, {{BatchNorm{}}}, Mode::inference};
  BoundUnit unit(on, spec_of(on, c, in(DType::bf16)));
  CHECK(unit.lowered.prepared_bytes == 512);                       // the bias in f32, and the filter
  put(on, row(unit.args.workspace, 12, DType::f32), counted(12));  // the fake's fold writes nothing
  put(on, row(unit.args.prepared, 4, DType::f32), {1, 2, 3, 4});
  unit.run(Pass::prepare);
  REQUIRE(on.log.folds.size() == 1);
  CHECK(on.log.folds[0].fold.dtype == DType::f32);
  CHECK(on.log.folds[0].w_to == unit.args.workspace);
  CHECK(on.log.folds[0].bias_to == unit.args.prepared);
  CHECK(get(on, row(at(unit.args.prepared, 256), 12, DType::bf16)) == counted(12));
  on.fake.name(at(unit.args.prepared, 256), "filter");
  const CallTexts forward = unit.run(Pass::forward);
  REQUIRE(forward.size() == 1);
  CHECK_THAT(forward[0], ContainsSubstring(", filter, "));
  CHECK(get(on, unit.args.y)[4] == 2);  // the folded bias of channel 1

  const Case with_tail = {"", c.op, c.x, {{BatchNorm{}}, {Add{}}, {Relu{}}}, Mode::inference};
  BoundUnit tail(on, spec_of(on, with_tail, in(DType::bf16)));
  CHECK(on.backend.algorithms(spec_of(on, with_tail, in(DType::bf16)), Pass::forward).size() ==
        8);  // no fused algorithm
  on.log.calls.clear();
  tail.run(Pass::forward);
  CHECK(on.fake.names() == CallTexts{"ConvolutionForward", "AddTensor", "ActivationForward"});
  CHECK(on.log.calls == CallTexts{"add bias to bf16"});
}

TEST_CASE("cudnn: half-precision products are summed in f32, and their parameter gradients are f32") {
  for (const DType dtype : both_halves) {
    FakeBackend on;
    const Conditions conditions = in(dtype, Layout::nchw, true);
    BoundUnit unit(on, spec_of(on, {"", FullyConnected{.outputs = 2}, {{2, 3, 1, 1}}}, conditions));
    put(on, unit.args.x[0], {1, 2, 3, 4, 5, 6});
    put(on, unit.args.w[0], {1, 0, 2, 0, 1, 1 + 0x1p-12});
    put(on, unit.args.w[1], {0.5, 0});
    put(on, unit.args.dw[0], {0x1p-20, 0, 0, 0, 0, 0});
    put(on, unit.args.dw[1], {0, 0x1p-20});
    put(on, unit.args.dx[0], {1, 1, 1, 1, 1, 1});
    put(on, unit.args.dy, {1, 2, 3, 4});
    CHECK(unit.run(Pass::prepare).empty());
    CHECK(unit.run(Pass::forward).empty());
    CHECK(get(on, unit.args.y) == std::vector<double>{7.5, 5, 16.5, 11});
    CHECK(unit.run(Pass::backward_params).empty());
    CHECK(get(on, unit.args.dw[0]) == std::vector<double>{13 + 0x1p-20, 17, 21, 18, 24, 30});
    CHECK(get(on, unit.args.dw[1]) == std::vector<double>{4, 6 + 0x1p-20});
    CHECK(unit.run(Pass::backward_data).empty());
    CHECK(get(on, unit.args.dx[0]) == std::vector<double>{2, 3, 5, 4, 5, 11});
    CHECK(std::ranges::count(on.log.calls, "cublasGemmEx") == 3);
    CHECK(std::ranges::count(on.log.calls, "cublasSgemm_v2") == 0);
  }
}

TEST_CASE("cudnn: a half-precision batch norm has f32 parameters and f32 statistics") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, {"", BatchNorm{}, {{2, 3, 2, 2}}}, in(DType::f16)));
  const std::string t = "f16 2x3x2x2 / 12 4 2 1";
  CHECK_THAT(unit.run(Pass::forward).at(0),
             ContainsSubstring(t + ", x0, " + t + ", y, f32 1x3x1x1 / 3 1 1 1, w0, w1, 0.1") &&
                 ContainsSubstring("state0, state1"));
  CHECK(unit.lowered.saved_bytes == 512);
}

TEST_CASE("cudnn: a padded copy in half precision is filled with minus infinity of the same type") {
  for (const DType dtype : both_halves) {
    FakeBackend on;
    const Case c = {"", MaxPool{.window = 3, .stride = 2, .pad = 0, .rounding = Rounding::up}, {{2, 3, 6, 4}}};
    BoundUnit unit(on, spec_of(on, c, in(dtype)));
    on.fake.status["PoolingForward"] = 3000;
    CHECK_THROWS_AS(unit.run(Pass::forward), Unsupported);
    CHECK_THAT(on.fake.calls.front(),
               ContainsSubstring(std::string(to_string(dtype)) + " 2x3x7x5") && ContainsSubstring("workspace, -inf)"));
  }
}

TEST_CASE("cudnn: a half-precision LSTM, and units with two types, are computed in f32 on converted copies") {
  FakeBackend on;
  BoundUnit lstm(on, spec_of(on, {"", Recurrent{.hidden = 3}, {{2, 4, 5, 1}}}, in(DType::bf16)));
  on.log.calls.clear();
  CHECK(lstm.run(Pass::forward).back().find("RNNForward") == 0);
  CHECK(on.log.calls.front() == "convert bf16 to f32");
  CHECK(on.log.calls.back() == "convert f32 to bf16");
  on.log.calls.clear();
  BoundUnit silu(
      on, spec_of(on, {"", Pointwise{Function::silu}, {{1, 2, 2, 2}}}, in(DType::f16)));  // our kernel reads halves
  put(on, silu.args.x[0], {0, 0, 0, 0, 0, 0, 0, 8});
  CHECK(silu.run(Pass::forward).empty());
  CHECK(get(on, silu.args.y)[7] == Approx(8 / (1 + std::exp(-8.0))).epsilon(0x1p-11));
  CHECK(on.log.calls.empty());
  Spec mixed = spec_of(on, {"", Relu{}, {{1, 3, 2, 2}}}, in(DType::f16));
  mixed.y.dtype = DType::f32;
  BoundUnit relu(on, mixed);
  CHECK_THAT(relu.run(Pass::forward).at(0),
             ContainsSubstring(", f32 1x3x2x2 / 12 4 2 1, ") && !ContainsSubstring("f16"));
}

TEST_CASE("cudnn: a half-precision plan converts its weights in each forward pass, and its memory counts the copies") {
  Graph graph("net");
  const Value x = relu(batch_norm(conv(graph.input({2, 3, 8, 8}), "conv", {.channels = 4, .kernel = 3}), "bn"));
  fully_connected(global_average_pool(x), "fc", {.outputs = 3});
  FakeBackend on;
  Options options{.dtype = DType::bf16};
  Plan plan(graph, on.backend, options);
  CHECK(plan.memory().prepared == 2 * 256);
  CHECK(predict_memory(graph, on.backend, options).total() == plan.memory().total());
  const int made = on.fake.made, allocations = on.log.device.allocations, copies = on.log.device.copies;
  const CallTexts forward = {"convert f32 to bf16", "add bias to bf16", "convert f32 to bf16", "cublasSetWorkspace_v2",
                             "cublasSetMathMode",   "cublasGemmEx",     "add bias to bf16"};
  for (int pass = 0; pass < 2; ++pass) {
    on.log.calls.clear();
    plan.forward();
    CHECK(on.log.calls == forward);
    plan.backward();
  }
  CHECK(std::ranges::count(on.log.calls, "convert bf16 to f32") == 1);  // the gradient of the filter
  CHECK(std::ranges::count(on.log.calls, "bias gradient of bf16") == 2);
  CHECK(on.fake.made == made);
  CHECK(on.log.device.allocations == allocations);
  CHECK(on.log.device.copies == copies);
  CHECK(on.log.device.waits == 0);
}

TEST_CASE("cudnn: with a loss scale, our kernel checks for overflow before the update of f32 parameters") {
  Graph graph("net");
  const Value x = fully_connected(graph.input({2, 3, 1, 1}), "fc", {.outputs = 3});
  softmax_cross_entropy(x, graph.input({2, 1, 1, 1}, "labels"));
  FakeBackend on;
  Plan plan(graph, on.backend, {.dtype = DType::f16, .optimiser = Sgd{}, .loss_scale = 1024});
  plan.forward();
  plan.scale_loss();
  plan.backward();
  on.log.calls.clear();
  on.log.updates.clear();
  plan.update(0.1);
  CHECK(on.log.calls == CallTexts{"check overflow"});
  REQUIRE(on.log.updates.size() == 1);
  CHECK(on.log.updates[0].dtype == DType::f32);
  CHECK(on.log.updates[0].loss_scale != nullptr);
}

TEST_CASE("cudnn: units that half precision does not support are refused with op, type and reason") {
  FakeBackend on;
  const auto refuses = [&](FakeBackend& with, const Spec& spec, const std::string& word, const Choice& choice = {}) {
    INFO(word);
    CHECK_THROWS_MATCHES(with.backend.lower(spec, choice), Unsupported, Says("cudnn: ", word));
  };
  const Case conv = {"", Conv{.channels = 2, .kernel = 1}, {{1, 3, 2, 2}}}, relu = {"", Relu{}, {{1, 2, 3, 3}}};
  for (const Case& c : {conv, relu, Case{"", FullyConnected{.outputs = 2}, {{2, 3, 1, 1}}}})
    refuses(on, spec_of(on, c, in(DType::bf16)), "with bf16 take strict math", {.math = Math::tf32});
  refuses(on, spec_of(on, relu, in(DType::f16)), "leave max_error out", {.max_error = 0.1});
  FakeBackend old(8005);
  refuses(old, spec_of(old, relu, in(DType::bf16)), "relu: cuDNN 8.0.5 has no bf16; give 8.1 or later");
  CHECK_NOTHROW(old.backend.lower(spec_of(old, relu, in(DType::f16)), {}));
  Spec mixed = spec_of(on, relu, in(DType::f16));
  mixed.x[0].dtype = DType::bf16;
  refuses(on, mixed, "one unit takes one type");
  refuses(on, spec_of(on, conv, in(DType::f16)), "algo_0 needs 512 bytes of workspace, the limit is 511",
          {.workspace_limit = 511});
  CHECK_NOTHROW(on.backend.lower(spec_of(on, conv, in(DType::f16)), {.workspace_limit = 512}));
  refuses(on, spec_of(on, {"", Lrn{}, {{1, 5, 2, 2}}}, in(DType::f16, Layout::nhwc)), "no nhwc layout in f16");
  on.log.unavailable = "no GPU here";
  const Lowered bound = on.backend.lower(spec_of(on, conv, in(DType::f16)), {.workspace_limit = 4096});
  CHECK(bound.steps[1].kernel->workspace_bytes() == 4096);
}

#endif

TEST_CASE("cudnn: the bias gradient of a wide half-precision fully connected op respects the workspace limit") {
  FakeBackend on;
  const Spec spec = spec_of(on, {"", FullyConnected{.outputs = 4096, .bias = true}, {{64, 3, 1, 1}}}, in(DType::bf16));
  CHECK_THROWS_WITH(on.backend.lower(spec, {.workspace_limit = 16384}),
                    ContainsSubstring("backward_params: gemm needs") && ContainsSubstring("the limit is 16384"));
}
