// The tests' own tools must detect faults: guards detect stray writes, finite differences detect wrong gradients.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/cases/plans.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/support/guarded.h"
#include "tests/support/skip.h"
#include "tests/support/wrapped_backend.h"

using namespace lamina::test;

namespace {

/// A planted fault: a function that may change a step's tensors after the step.
using Spoil = std::function<void(const std::vector<Pass>& covers, const Args&)>;

bool is(const std::vector<Pass>& covers, Pass pass) { return covers.front() == pass; }

Graph small_net() {
  Graph graph("small");
  Value x = conv(graph.input({2, 2, 4, 4}), "conv", {.channels = 3, .kernel = 3});
  fully_connected(max_pool(relu(x), "pool", {.window = 2, .stride = 1}), "fc", {.outputs = 2});
  return graph;
}

GradientReport report_with(const Spoil& spoil, DType dtype = DType::f64, const GradientCheck& how = {}) {
  WrappedBackend lying(oracle());
  lying.after = [spoil](const Spec&, const Lowered::Step& step) {
    return [spoil, covers = step.passes](const Args& args) { spoil(covers, args); };
  };
  return check_gradients(small_net(), lying, {.dtype = dtype}, how);
}

/// The report of gradients if `change` alters the gradient of the convolution's weight.
GradientReport report_with_weight(void (*change)(Values&), DType dtype = DType::f64, const GradientCheck& how = {}) {
  const auto spoil = [change](const std::vector<Pass>& covers, const Args& args) {
    if (!is(covers, Pass::backward_params) || args.dw.size() != 2 || args.dw[0].shape.h != 3) return;
    Values dw = read(oracle().device(), args.dw[0]);
    change(dw);
    write(oracle().device(), args.dw[0], dw);
  };
  return report_with(spoil, dtype, how);
}

}  // namespace

TEST_CASE("guards detect one byte written before, after and in the gaps of a tensor") {
  Device& device = oracle().device();
  const Tensor like{nullptr, {2, 1, 1, 3}, DType::f32, Layout::nchw, 5};
  for (const int byte : {-1, 3 * 4, 5 * 4 - 1, 8 * 4, 8 * 4 + 100}) {
    GuardedTensor guarded(device, like, 1, 3);
    guarded.set({1, 2, 3, 4, 5, 6});
    CHECK(guarded.damage() == "");
    CHECK(guarded.untouched());
    auto* bytes = static_cast<unsigned char*>(guarded.tensor().data) + byte;
    *bytes = static_cast<unsigned char>(*bytes + 1);
    CHECK(guarded.damage() != "");
    CHECK(guarded.get() == Values{1, 2, 3, 4, 5, 6});
  }
}

TEST_CASE("Says() matches exactly the parts in an error's text") {
  const UsageError error("one and two");
  CHECK(Says("one", "two").match(error));
  CHECK_FALSE(Says("one", "three").match(error));
  CHECK(said_by<Error>([&] { throw error; }) == "one and two");
  CHECK(said_by<Error>([] {}) == "nothing was thrown");
}

TEST_CASE("larger() is NaN if one of the numbers is NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(larger(1, 2) == 2);
  CHECK(larger(2, 1) == 2);
  CHECK(std::isnan(larger(1, nan)));
  CHECK(std::isnan(larger(nan, 1)));
}

TEST_CASE("a guarded tensor that was not set is NaN everywhere") {
  for (const DType dtype : element_types())
    for (const double value :
         GuardedTensor(oracle().device(), {nullptr, {2, 3, 4, 5}, dtype, Layout::nchw, 60}, 1, 0).get())
      CHECK(std::isnan(value));
}

TEST_CASE("a guarded tensor can have the layout nhwc with a pitch") {
  GuardedTensor guarded(oracle().device(), {nullptr, {1, 2, 1, 2}, DType::f64, Layout::nhwc, 3}, 1, 0);
  guarded.set({1, 2, 3, 4});
  const auto* data = guarded.tensor().as<double>();
  CHECK(data[0] == 1);
  CHECK(data[1] == 3);
  CHECK(data[3] == 2);
  CHECK(data[4] == 4);
  CHECK(guarded.get() == Values{1, 2, 3, 4});
}

TEST_CASE("differences agree with correct gradients in every type, and check every tensor") {
  for (const DType dtype : element_types()) {
    const GradientReport report = report_with([](const std::vector<Pass>&, const Args&) {}, dtype);
    INFO(to_string(report));
    CHECK(report.passed());
    CHECK(report.tensors.size() == 5);
    for (const GradientError& error : report.tensors) CHECK(error.seen);
    CHECK(to_string(report).starts_with("passed: 5 tensors"));
  }
}

TEST_CASE("differences detect a gradient that is wrong by a millionth, and name its place") {
  const GradientReport report = report_with_weight([](Values& dw) { dw[22] *= 1 + 1e-6; });
  CHECK_FALSE(report.passed());
  CHECK(report.worst().tensor == "conv.weight");
  CHECK(report.worst().place == "[1,0,1,1]");
  CHECK(to_string(report).starts_with("conv.weight[1,0,1,1]: gradient "));
  CHECK(to_string(report).find("failed: 1 of 5 tensors") != std::string::npos);
}

TEST_CASE("differences detect a wrong sign, factor or index order, by coordinates and along directions") {
  void (*const changes[])(Values&) = {
      [](Values& dw) {
        for (double& each : dw) each = -each;
      },
      [](Values& dw) {
        for (double& each : dw) each /= 1.01;
      },
      [](Values& dw) {
        for (std::size_t plane = 0; plane < dw.size(); plane += 9)
          for (const auto& [a, b] : {std::pair<std::size_t, std::size_t>{1, 3}, {2, 6}, {5, 7}})
            std::swap(dw[plane + a], dw[plane + b]);
      }};
  for (const auto& change : changes)
    for (const int coordinates : {0, 20, 64}) {
      const GradientReport report = report_with_weight(change, DType::f64, {.coordinates = coordinates});
      INFO(to_string(report));
      CHECK_FALSE(report.passed());
      CHECK(report.worst().tensor == "conv.weight");
      CHECK(report.worst().place.empty() == (coordinates == 0));
      CHECK_FALSE(report_with_weight(change, DType::f32, {.coordinates = coordinates}).passed());
    }
}

TEST_CASE("differences detect a missing bias gradient, a missing data gradient and a NaN") {
  CHECK_FALSE(report_with([](const std::vector<Pass>& covers, const Args& args) {
                if (is(covers, Pass::backward_params)) args.dw[1].as<double>()[0] = 0;
              }).passed());
  CHECK_FALSE(report_with([](const std::vector<Pass>& covers, const Args& args) {
                if (is(covers, Pass::backward_data) && args.w.empty())
                  std::fill_n(args.dx[0].as<double>(), args.dx[0].shape.count(), 0.0);
              }).passed());
  CHECK(report_with([](const std::vector<Pass>& covers, const Args& args) {
          if (is(covers, Pass::backward_params)) args.dw[0].as<double>()[0] = std::nan("");
        })
            .worst()
            .times() == std::numeric_limits<double>::infinity());
}

TEST_CASE("an element with a kink at every step is left out, and a tensor of such elements does not pass") {
  Graph graph("flat");
  relu(multiply(graph.input({1, 1, 1, 1}, "x"), graph.input({1, 1, 1, 1}, "y")));
  const GradientReport report = check_gradients(graph, oracle(), {.dtype = DType::f64}, {.step = 1e6});
  INFO(to_string(report));
  CHECK_FALSE(report.passed());
  CHECK(report.tensors[0].probes == 0);
  CHECK(report.tensors[0].skipped == 1);
  CHECK_FALSE(report.tensors[0].passed());
  CHECK(to_string(report).find("x: every step meets a kink") != std::string::npos);
  CHECK(to_string(report).find("undecided: 2 of 2 tensors") != std::string::npos);
  CHECK_FALSE(GradientReport{}.passed());
}

TEST_CASE("differences begin with the given parameters in every plan, and report the next tensor") {
  Graph graph("one product");
  relu(conv(graph.input({1, 1, 2, 4}, "x"), "conv", {.channels = 2, .kernel = 1, .bias = false}));
  int plans = 0;
  std::vector<std::string> said;
  GradientCheck how{.coordinates = 0, .directions = 1};  // one direction: the gradient
  how.progress = [&](const std::string& next) { said.push_back(next); };
  const auto of_weight = [&](double weight) {
    how.start = [&](Plan& plan) {
      ++plans;
      const double both[] = {weight, weight};
      upload(oracle().device(), plan.parameter("conv.weight"), std::span<const double>(both));
    };
    return check_gradients(graph, oracle(), {.dtype = DType::f64}, how).tensors[0].gradient;
  };
  const double one = of_weight(1), three = of_weight(3);
  REQUIRE(one != 0);
  CHECK(three == Approx(3 * one));
  CHECK(plans == 4);  // two checks with two plans each; one plan finds kinks
  CHECK(said.size() == 8);
  CHECK(said.back() == "[2/2] conv.weight");
}

TEST_CASE("differences refuse inference and a negative step") {
  CHECK_THROWS_AS(check_gradients(small_net(), oracle(), {.mode = Mode::inference}), UsageError);
  CHECK_THROWS_AS(check_gradients(small_net(), oracle(), {}, {.step = -1}), UsageError);
  CHECK_THROWS_WITH(check_gradients(small_net(), oracle(), {.dtype = DType::bf16}),
                    ContainsSubstring("values are rounded to bf16"));
}

TEST_CASE("differences agree in nets with many kinks, for every seed", "[random]") {
  Graph graph("kinks");
  Value x = graph.input({2, 3, 9, 9});
  for (int i = 0; i < 6; ++i) {
    const std::string name = "layer" + std::to_string(i);
    x = relu(conv(x, name, {.channels = 4, .kernel = 3, .pad = 1}));
    x = max_pool(x, name + ".pool", {.window = 3, .stride = 1, .pad = 1});
  }
  fully_connected(x, "fc", {.outputs = 3});
  Options options{.dtype = DType::f64};
  for (std::uint64_t key = seed() * 10; key < seed() * 10 + 10; ++key) {
    options.seed = key;
    GradientCheck how{.coordinates = 8, .directions = 2};
    how.seed = key;
    INFO("seed " << key);
    check_passed(check_gradients(graph, one_thread(), options, how));
  }
}

#if defined(LAMINA_TEST_CLOSED)
TEST_CASE("closed memory faults if the host accesses it, but not in kernels, upload, download and fill") {
  const auto closed = make_named("cuda-host-closed");
  Device& device = closed->device();
  const Buffer block(device, 4096);
  const std::vector<unsigned char> sent(4096, 7);
  device.upload(block.data(), sent.data(), sent.size());
  device.fill(block.data(), 9, 1);
  std::vector<unsigned char> back(4096);
  device.download(back.data(), block.data(), back.size());
  CHECK(back[0] == 9);
  CHECK(back[4095] == 7);
  const Case c{
      "", FullyConnected{.outputs = 2}, {{2, 3, 1, 1}}, {{Relu{}}}};  // needs cuBLAS's substitute and our own kernels
  const Feed feed = make_feed(c, 1);
  CHECK(run_unit(*closed, *make_spec(*closed, c, {.dtype = DType::f64}), {.algorithm = {"cublas", "", ""}}, feed)
            .y.size() == 4);

  for (const bool writes : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      for (const int number : {SIGSEGV, SIGBUS}) std::signal(number, [](int) { ::_exit(3); });
      auto* const byte = static_cast<volatile unsigned char*>(block.data());
      if (writes) *byte = 1;
      const unsigned char read = *byte;
      ::_exit(read == 9 || read == 1 ? 0 : 1);
    }
    REQUIRE(child > 0);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 3);
  }
}
#endif

TEST_CASE("the tested backend is LAMINA_TEST_BACKEND's, and cudnn uses LAMINA_TEST_CUDNN's directory") {
  const auto name_of = [](const char* backend, const char* directory) {
    const Variable named("LAMINA_TEST_BACKEND", backend), of("LAMINA_TEST_CUDNN", directory);
    return tested_backend("eigen");
  };
  CHECK(name_of(nullptr, nullptr) == "eigen");
  CHECK(name_of(nullptr, "/somewhere") == "eigen");
  CHECK(name_of("cudnn", nullptr) == "cudnn");
  CHECK(name_of("cudnn", "") == "cudnn");
  CHECK(name_of("cudnn", "/somewhere") == "cudnn:/somewhere");
  CHECK(name_of("cudnn:/elsewhere", "/somewhere") == "cudnn:/elsewhere");
  CHECK(name_of("cuda", "/somewhere") == "cuda");
}
