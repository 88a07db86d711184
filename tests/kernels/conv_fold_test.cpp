// A batch norm folded into a convolution on cuda-host: the formula by hand, the error bounds of the algorithms, and the
// moments at which a plan folds.

#include "kernels/conv/conv_fold.h"
#include "kernels/host/grid.h"
#include "lamina/nets.h"
#include "tests/support/cases/plans.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;
using cuda_host::host::kernels_run;

namespace {

/// 1 and then numbers so small that each is lost when it is added to 1, so that a sum in order has the largest error.
Values lossy(std::int64_t count) {
  Values values(static_cast<std::size_t>(count), std::ldexp(1.0, -24));
  values[0] = 1;
  return values;
}

double max_error(const Lowered& lowered) { return lowered.steps.front().max_error; }

/// A network of a stem and two bottlenecks, of which the first has stride 2. It has eight convolutions, each with a
/// batch norm.
Graph residual() {
  Graph graph("residual");
  const auto conv_bn = [](Value x, const std::string& name, const Conv& op) {
    return batch_norm(conv(x, name + ".conv", op), name + ".bn");
  };
  Value x = relu(conv_bn(graph.input({2, 3, 8, 8}), "stem", {.channels = 8, .kernel = 3, .pad = 1, .bias = false}),
                 "stem.relu");
  for (const int stride : {2, 1}) {
    const std::string name = stride == 2 ? "a" : "b";
    Value y = relu(conv_bn(x, name + ".1", {.channels = 4, .kernel = 1, .bias = false}));
    y = relu(conv_bn(y, name + ".2", {.channels = 4, .kernel = 3, .stride = stride, .pad = 1, .bias = false}));
    y = conv_bn(y, name + ".3", {.channels = 16, .kernel = 1, .bias = false});
    if (stride == 2) x = conv_bn(x, name + ".down", {.channels = 16, .kernel = 1, .stride = 2, .bias = false});
    x = relu(add(y, x));
  }
  return graph;
}

/// The number of launches in `run` of kernels whose names begin with `prefix`.
template <class Run>
std::uint64_t launches(const std::string& prefix, Run run) {
  const auto count = [&] {
    std::uint64_t sum = 0;
    for (const auto& [name, times] : kernels_run())
      if (name.starts_with(prefix)) sum += times;
    return sum;
  };
  const std::uint64_t before = count();
  run();
  return count() - before;
}

}  // namespace

TEST_CASE("a batch norm is folded into filter and bias, by hand") {
  // Filter 0: 6 / sqrt(3.75 + 0.25) = 3, filter 1: 2 / sqrt(15.75 + 0.25) = 1/2.
  const std::vector<double> w = {1, -2, 3, 4, 8, 10}, bias = {5, 7};
  const std::vector<double> scale = {6, 2}, shift = {1, -1}, mean = {2, 3}, variance = {3.75, 15.75};
  std::vector<double> w_to(w.size(), NAN), bias_to(2, NAN);
  cuda_host::ConvFold<double> fold{
      {scale.data(), shift.data(), mean.data(), variance.data(), 0.25}, w.data(), bias.data(), 2, 3};
  cuda_host::conv_fold<double>(nullptr, fold, w_to.data(), bias_to.data());
  CHECK(w_to == std::vector<double>{3, -6, 9, 2, 4, 5});
  CHECK(bias_to == std::vector<double>{10, 1});

  std::vector<double> bias_alone(2, NAN);
  fold.bias = nullptr;
  cuda_host::conv_fold<double>(nullptr, fold, nullptr, bias_alone.data());
  CHECK(bias_alone == std::vector<double>{-5, -2.5});
}

TEST_CASE("a convolution with batch norm and Add keeps an error bound that includes both") {
  const double u = std::ldexp(1.0, -24);
  const auto backend = make_backend("cuda-host");
  for (const std::string name : {"implicit_gemm", "im2col_gemm", "direct"})
    for (const auto& [op, x] : {std::pair{Conv{.channels = 1, .kernel = 1, .bias = false}, Shape{1, 24, 1, 1}},
                                std::pair{Conv{.channels = 1, .kernel = 3, .bias = false}, Shape{1, 3, 3, 3}}}) {
      const Case c{"", op, {x}, {{BatchNorm{.epsilon = static_cast<float>(2 * u)}}, {Add{}}}, Mode::inference};
      INFO(to_string(c) << " by " << name);
      // Every rounding of the sum loses u, and the sum is about 1 + 2^-11. Every term is positive.
      Feed feed;
      feed.x = {lossy(x.count()), {u}};
      feed.w = {Values(static_cast<std::size_t>(x.count()), 1.0), {1 + 2 * u}, {u}};
      feed.state = {{0.0}, {1.0}};
      feed.x[0][0] = feed.w[0][0] = 1 + std::ldexp(1.0, -12);
      const Choice named{.algorithm = {name, "", ""}};
      const Spec spec = *make_spec(*backend, c, {.dtype = DType::f32});
      const double promised = max_error(backend->lower(spec, named));
      const double want = reference(c, feed).y[0], got = run_unit(*backend, spec, named, feed).y[0];
      CHECK(std::abs(got - want) <= promised * want);
      const Spec alone = *make_spec(*backend, {"", op, {x}, {}, Mode::inference}, {.dtype = DType::f32});
      if (name == "direct") continue;  // `direct` sums and adds in double
      CHECK(std::abs(got - want) >= 0.7 * promised * want);
      CHECK(promised - max_error(backend->lower(alone, named)) == Approx(5 * u));
    }
}

TEST_CASE("in inference a convolution's batch norm, Add and ReLU need no launch, and passes do not fold") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::string name : {"", "implicit_gemm", "direct"}) {
      INFO(to_string(dtype) << " by " << name);
      const auto backend = make_backend("cuda-host");
      const Options options{.mode = Mode::inference, .dtype = dtype, .choice = {.algorithm = {name, "", ""}}};
      std::optional<Plan> plan;
      CHECK(launches("conv_fold", [&] { plan.emplace(residual(), *backend, options); }) == 8);
      CHECK(plan->calls().size() == 8);
      // Sums of so few terms are not split into ranges, so each convolution is one launch.
      CHECK(launches("", [&] { plan->forward(); }) == 8);
      CHECK(launches("", [&] { plan->forward(); }) == 8);
      CHECK(launches("conv_fold", [&] { plan->parameters_changed(); }) == 8);

      Options unfused = options;
      unfused.fuse = false;
      Plan apart(residual(), *backend, unfused);
      apart.forward();
      Outcome got, want;
      got.output = read(*plan, plan->output());
      want.output = read(apart, apart.output());
      check_same(got, want, dtype == DType::f64 ? 1e-12 : 1e-4);
    }
}

TEST_CASE("ResNet-50 in inference is 56 calls with fused units and 174 without, and launches no batch norm") {
  const Graph graph = nets::build("resnet50", {.batch = 1, .image = 64, .classes = 5, .width_divisor = 16});
  const auto backend = make_backend("cuda-host");
  Plan plan(graph, *backend, {.mode = Mode::inference});
  CHECK(plan.calls().size() == 56);  // 53 convolutions, two pools, the fully connected op
  CHECK(launches("batch_norm", [&] { plan.forward(); }) == 0);
  CHECK(launches("add_two", [&] { plan.forward(); }) == 0);
  CHECK(launches("copy", [&] { plan.forward(); }) == 0);  // every Add's other operand is already in y
  CHECK(Plan(graph, *backend, {.mode = Mode::inference, .fuse = false}).calls().size() == 174);
}

TEST_CASE("an unfused batch norm computes its factors when parameters change, not in a pass of inference") {
  Graph graph("alone");
  batch_norm(graph.input({2, 3, 4, 5}), "bn");
  const auto backend = make_backend("cuda-host");
  std::optional<Plan> plan;
  const std::string factors = "batch_norm_from_running_kernel";
  CHECK(launches(factors, [&] { plan.emplace(graph, *backend, Options{.mode = Mode::inference}); }) == 1);
  CHECK(launches("", [&] { plan->forward(); }) == 1);
  CHECK(launches(factors, [&] { plan->parameters_changed(); }) == 1);
}
