// The backend cudnn: refusals before an op is lowered, the description, and the calls of a pass.

#include <iterator>
#include <sstream>

#include "lamina/plan.h"
#include "tests/cudnn/bound.h"
#include "tests/support/catch.h"

using namespace lamina::test;

TEST_CASE("cudnn: making the backend opens no library, and the backend needs a device and a library") {
  FakeBackend on;
  CHECK(on.fake.count == 0);
  CHECK(on.backend.name() == "cudnn");
  CHECK(on.backend.available().empty());
  CHECK(on.backend.describe() == "cuDNN 9.19.0, built for CUDA 13.1, cuBLAS 13 of the host");
  CHECK(on.fake.count == 0);
  CHECK(&on.backend.device() == &on.log.device);
  CHECK(on.fake.names() ==
        std::vector<std::string>{"Create", "SetStream", "CreateConvolutionDescriptor", "DestroyConvolutionDescriptor"});
  on.log.unavailable = "no driver";
  CHECK(on.backend.available() == "no driver");

  MachineLog log;
  const std::unique_ptr<Backend> without = cudnn::make_backend(
      "cudnn:there", make_host_machine(log), []() -> const cudnn::Api& { throw LoadError("no cuDNN there"); });
  CHECK(without->available() == "no cuDNN there");
  CHECK_THROWS_AS(without->device(), LoadError);
}

TEST_CASE("cudnn: the peak is the rate of the device's arithmetic units, and makes no call of cuDNN") {
  FakeBackend on;
  on.log.peak_flops_per_second = 6e13;
  CHECK(on.backend.peak_flops_per_second(DType::f32) == 6e13);
  CHECK(on.backend.peak_flops_per_second(DType::f64) == 3e13);
  CHECK(on.fake.count == 0);
}

TEST_CASE("cudnn: an update is our own kernel, in the plan's type, and makes no call of cuDNN") {
  FakeBackend on;
  on.backend.update({{.rule = Update::Rule::adam}, {.dtype = DType::f64, .count = 7}});
  REQUIRE(on.log.updates.size() == 1);
  CHECK(on.log.updates[0].rule == Update::Rule::adam);
  CHECK(on.log.updates[0].count == 7);
  CHECK_THROWS_AS(on.backend.update({{}, {.dtype = DType::f16, .count = 7}}), Unsupported);
  CHECK(on.log.updates.size() == 1);
  CHECK(on.fake.count == 0);
}

TEST_CASE("cudnn: an unsupported type, mixture of types, layout, fused unit or name is refused with an error") {
  FakeBackend on;
  const auto refuses = [&](Spec spec, const std::string& word, const Choice& choice = {}) {
    INFO(word);
    CHECK_THROWS_MATCHES(on.backend.lower(spec, choice), Unsupported, Says("cudnn", word));
  };
  for (const Case& c : cases()) refuses(spec_of(on, {"", c.op, c.x}, {.dtype = DType::u64}), "u64");
  const Case relu = {"", Relu{}, {{1, 2, 3, 3}}};
  Spec spec = spec_of(on, relu);
  spec.x[0].dtype = DType::f64;
  refuses(spec, "one type");
  spec = spec_of(on, relu);
  spec.x[0].layout = Layout::nhwc;
  refuses(spec, "both layouts");
  spec = spec_of(on, relu);
  spec.tail = {Relu{}};
  refuses(spec, "cannot be fused");
  refuses(spec_of(on, relu, {.dtype = DType::f32, .pitched = true}), "without gaps");
  refuses(spec_of(on, relu, {.dtype = DType::f64, .layout = Layout::nhwc}), "no nhwc layout in f64");
  for (const Op& op : {Op(Lrn{}), Op(Dropout{}), Op(Softmax{})})
    refuses(spec_of(on, {"", op, {{1, 5, 2, 2}}}, {.dtype = DType::f32, .layout = Layout::nhwc}), "nhwc");
  CHECK_NOTHROW(on.backend.lower(
      spec_of(on, {"", Softmax{}, {{2, 5, 1, 1}}}, {.dtype = DType::f32, .layout = Layout::nhwc}), {}));
  refuses(spec_of(on, {"", BatchNorm{}, {{2, 2, 3, 3}}}), "512 bytes of workspace, the limit is 511",
          {.workspace_limit = 511});
  spec = spec_of(on, relu);
  spec.x[0].shape = spec.y.shape = {1, 1, 1 << 16, 1 << 16};
  spec.x[0].pitch = spec.y.pitch = spec.x[0].gradient_pitch = spec.y.gradient_pitch = std::int64_t{1} << 32;
  refuses(spec, "stride");
  CHECK_THROWS_AS(on.backend.lower(spec_of(on, relu), {.algorithm = {"quick", "", ""}}), UsageError);
  CHECK_NOTHROW(on.backend.lower(spec_of(on, relu), {.algorithm = {"direct", "", "direct"}, .math = Math::tf32}));
  spec.op = Input{.shape = {}};
  spec = {};
  spec.op = Input{.shape = {}};
  CHECK_THROWS_AS(on.backend.lower(spec, {}), UsageError);

  const Spec fc = spec_of(on, {"", FullyConnected{.outputs = 2}, {{2, 3, 1, 1}}}),
             fc64 = spec_of(on, {"", FullyConnected{.outputs = 2}, {{2, 3, 1, 1}}}, {.dtype = DType::f64});
  CHECK_THROWS_AS(on.backend.lower(fc, {.algorithm = {"direct", "", ""}}), UsageError);
  refuses(fc64, "tf32", {.math = Math::tf32});
  refuses(fc, "no bound on its error", {.max_error = 1e-3});
}

TEST_CASE("cudnn: the backend lists algorithms for each pass that an op has") {
  FakeBackend on;
  on.log.unavailable = "no driver";
  const auto count = [&](const Op& op, const std::vector<Shape>& x, Pass pass) {
    return on.backend.algorithms(spec_of(on, {"", op, x}), pass).size();
  };
  CHECK(count(Relu{}, {{1, 2, 3, 3}}, Pass::backward_params) == 0);
  CHECK(count(Relu{}, {{1, 2, 3, 3}}, Pass::recompute) == 1);
  CHECK(count(Relu{}, {{1, 2, 3, 3}}, Pass::prepare) == 0);
  CHECK(count(BatchNorm{}, {{2, 2, 3, 3}}, Pass::backward_params) == 1);
  CHECK(count(BatchNorm{}, {{2, 2, 3, 3}}, Pass::recompute) == 0);
  CHECK(count(FullyConnected{.outputs = 1}, {{2, 2, 3, 3}}, Pass::backward_params) == 1);
  CHECK(count(Conv{.channels = 1, .kernel = 1}, {{2, 2, 3, 3}}, Pass::recompute) == 0);
  CHECK(on.fake.count == 0);
}

TEST_CASE("cudnn: a pass of a plan allocates nothing, waits for nothing, and creates no descriptor") {
  Graph graph("all");
  Value x = relu(conv(graph.input({2, 3, 8, 8}), "conv", {.channels = 4, .kernel = 3, .pad = 1}));
  x = relu(batch_norm(conv(x, "conv2", {.channels = 4, .kernel = 3, .pad = 1, .bias = false}), "bn"));
  x = concat({max_pool(x, "max", {.window = 3, .stride = 2, .rounding = Rounding::up}),
              average_pool(x, "mean", {.window = 2, .stride = 2})});
  x = add(x, lrn(x, "lrn", {}));
  softmax(fully_connected(dropout(global_average_pool(x), "drop"), "fc", {.outputs = 3}));
  const auto calls_of = [](const std::string& text) {
    std::istringstream words(text);
    return std::vector<std::string>{std::istream_iterator<std::string>(words), {}};
  };
  // After the product of the fully connected op, AddTensor adds the bias.
  const auto forward = calls_of(
      "ConvolutionForward AddTensor ActivationForward ConvolutionForward BatchNormalizationForwardTraining "
      "ActivationForward PoolingForward PoolingForward LRNCrossChannelForward OpTensor PoolingForward AddTensor "
      "SoftmaxForward");
  // LRNCrossChannelBackward adds its result to the gradient that TransformTensor has written.
  const auto backward = calls_of(
      "SoftmaxBackward ConvolutionBackwardBias PoolingBackward TransformTensor LRNCrossChannelBackward "
      "PoolingBackward PoolingBackward ActivationBackward BatchNormalizationBackward ConvolutionBackwardFilter "
      "ConvolutionBackwardData ActivationBackward ConvolutionBackwardFilter ConvolutionBackwardBias");
  const std::string product = "cublasSetWorkspace_v2 cublasSetMathMode cublasSgemm_v2 ";
  const auto forward_beside = calls_of(product), backward_beside = calls_of(product + product);
  for (const std::size_t version : {7605, 8907, 91900}) {
    FakeBackend on(version);
    {
      Plan plan(graph, on.backend, Options{});
      const int made = on.fake.made, allocations = on.log.device.allocations, copies = on.log.device.copies;
      // The names of the library's calls during a pass.
      const auto calls = [&](auto pass) {
        on.fake.forget();
        on.log.calls.clear();
        pass();
        return on.fake.names();
      };
      for (int i = 0; i < 2; ++i) {
        CHECK(calls([&] { plan.forward(); }) == forward);
        CHECK(names_of(on.log.calls) == forward_beside);  // the calls of cuBLAS
        CHECK(calls([&] { plan.backward(); }) == backward);
        CHECK(names_of(on.log.calls) == backward_beside);
      }
      CHECK(on.fake.made == made);
      CHECK(on.log.device.allocations == allocations);
      CHECK(on.log.device.waits == 0);
      CHECK(on.log.device.copies == copies);
    }
    CHECK(on.fake.living == 1);  // the handle, which the backend owns
  }
}

TEST_CASE("cudnn: without a device, predicted memory is an upper bound") {
  Graph graph("one");
  conv(graph.input({1, 2, 8, 8}), "conv", {.channels = 2, .kernel = 3});
  FakeBackend on;
  CHECK(predict_memory(graph, on.backend).workspace_exact);
  on.log.unavailable = "no driver";
  const MemoryReport report = predict_memory(graph, on.backend);
  CHECK_FALSE(report.workspace_exact);
  CHECK(report.workspace == Choice{}.workspace_limit);
}

TEST_CASE("cudnn: the backend's name is cudnn, optionally with a colon and the library's directory") {
  CHECK_THROWS_AS(make_backend("cudnn:"), Error);
  try {
    auto backend = make_backend("cudnn:nowhere");
    CHECK(backend->name() == "cudnn:nowhere");
    CHECK_FALSE(backend->available().empty());  // no device, or no library there
    CHECK_FALSE(
        backend->algorithms(spec_of(*std::make_unique<FakeBackend>(), {"", Relu{}, {{1, 1, 1, 1}}}), Pass::forward)
            .empty());
  } catch (const Unsupported& error) {
    CHECK_THAT(error.what(), ContainsSubstring("nvcc"));
  }
}
