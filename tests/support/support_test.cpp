// The tests' own tools can fail: guards see stray writes, units see broken promises, differences see wrong gradients.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <memory>

#include "lamina/error.h"
#include "lamina/gradient_check.h"
#include "tests/support/backend.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"
#include "tests/support/guarded.h"
#include "tests/support/skip.h"

using namespace lamina;
using namespace lamina::test;

namespace {

/// Eigen with one fault: after each ReLU's or convolution's step, `spoil` may change its tensors.
class Lying final : public Backend {
 public:
  using Spoil = void (*)(const std::vector<Pass>& covers, const Args&);
  explicit Lying(Spoil spoil) : spoil_(spoil) {}

  std::string_view name() const override { return "lying"; }
  std::string available() const override { return {}; }
  std::string describe() override { return "eigen, with a lie"; }
  Device& device() override { return oracle().device(); }
  std::vector<std::string> algorithms(const Spec& spec, Pass pass) const override {
    return oracle().algorithms(spec, pass);
  }
  Lowered lower(const Spec& spec, const Choice& choice) override {
    Lowered lowered = oracle().lower(spec, choice);
    for (Lowered::Step& step : lowered.steps) step.kernel = std::make_shared<Liar>(step, spoil_);
    return lowered;
  }

 private:
  class Liar final : public Kernel {
   public:
    Liar(const Lowered::Step& step, Spoil spoil) : covers_(step.passes), kernel_(step.kernel), spoil_(spoil) {}
    std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
    void run(const Args& args) override {
      kernel_->run(args);
      spoil_(covers_, args);
    }

   private:
    std::vector<Pass> covers_;
    std::shared_ptr<Kernel> kernel_;
    Spoil spoil_;
  };

  Spoil spoil_;
};

bool is(const std::vector<Pass>& covers, Pass pass) { return covers.front() == pass; }

Graph small_net() {
  Graph graph("small");
  Value x = conv(graph.input({2, 2, 4, 4}), "conv", {.channels = 3, .kernel = 3});
  fully_connected(max_pool(relu(x), "pool", {.window = 2, .stride = 1}), "fc", {.outputs = 2});
  return graph;
}

double worst_with(Lying::Spoil spoil) {
  Lying lying(spoil);
  Options options;
  options.dtype = DType::f64;
  return worst(check_gradients(small_net(), lying, options));
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

TEST_CASE("a guarded tensor that was not set is NaN everywhere") {
  for (const DType dtype : element_types())
    for (const double value :
         GuardedTensor(oracle().device(), {nullptr, {2, 3, 4, 5}, dtype, Layout::nchw, 60}, 1, 0).get())
      CHECK(std::isnan(value));
}

TEST_CASE("a guarded tensor holds nhwc with a pitch") {
  GuardedTensor guarded(oracle().device(), {nullptr, {1, 2, 1, 2}, DType::f64, Layout::nhwc, 3}, 1, 0);
  guarded.set({1, 2, 3, 4});
  const auto* data = guarded.tensor().as<double>();
  CHECK(data[0] == 1);
  CHECK(data[1] == 3);
  CHECK(data[3] == 2);
  CHECK(data[4] == 4);
  CHECK(guarded.get() == Values{1, 2, 3, 4});
}

TEST_CASE("differences agree with right gradients") {
  CHECK(worst_with([](const std::vector<Pass>&, const Args&) {}) < 1e-7);
}

TEST_CASE("differences detect a gradient that is wrong by a millionth") {
  CHECK(worst_with([](const std::vector<Pass>& covers, const Args& args) {
          if (is(covers, Pass::backward_params) && args.dw.size() == 2) args.dw[0].as<double>()[0] *= 1 + 1e-6;
        }) > 1e-7);
}

TEST_CASE("differences detect a missing bias gradient") {
  CHECK(worst_with([](const std::vector<Pass>& covers, const Args& args) {
          if (is(covers, Pass::backward_params)) args.dw[1].as<double>()[0] = 0;
        }) > 1e-3);
}

TEST_CASE("differences detect a missing data gradient") {
  CHECK(worst_with([](const std::vector<Pass>& covers, const Args& args) {
          if (is(covers, Pass::backward_data) && args.w.empty())
            std::fill_n(args.dx[0].as<double>(), args.dx[0].shape.count(), 0.0);
        }) > 1e-3);
}

TEST_CASE("differences call a NaN infinitely wrong") {
  CHECK(worst_with([](const std::vector<Pass>& covers, const Args& args) {
          if (is(covers, Pass::backward_params)) args.dw[0].as<double>()[0] = std::nan("");
        }) == std::numeric_limits<double>::infinity());
}

TEST_CASE("differences refuse inference and a step that is not positive") {
  Options options;
  options.mode = Mode::inference;
  CHECK_THROWS_AS(check_gradients(small_net(), oracle(), options), UsageError);
  CHECK_THROWS_AS(check_gradients(small_net(), oracle(), {}, {.step = 0}), UsageError);
}

TEST_CASE("differences agree in nets with nothing but kinks, for every seed", "[random]") {
  Graph graph("kinks");
  Value x = graph.input({2, 3, 9, 9});
  for (int i = 0; i < 6; ++i) {
    const std::string name = "layer" + std::to_string(i);
    x = relu(conv(x, name, {.channels = 4, .kernel = 3, .pad = 1}));
    x = max_pool(x, name + ".pool", {.window = 3, .stride = 1, .pad = 1});
  }
  fully_connected(x, "fc", {.outputs = 3});
  Options options;
  options.dtype = DType::f64;
  for (std::uint64_t key = seed() * 10; key < seed() * 10 + 10; ++key) {
    options.seed = key;
    GradientCheck how{.coordinates = 8, .directions = 2};
    how.seed = key;
    for (const GradientError& error : check_gradients(graph, one_thread(), options, how)) {
      INFO("seed " << key << ' ' << error.tensor << " at step " << error.step);
      CHECK(error.relative_error < 1e-7);
    }
  }
}

#if defined(LAMINA_TEST_CLOSED)
TEST_CASE("closed memory faults where the host touches it, and kernels, upload, download and fill do not") {
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
  const Case c{"", FullyConnected{.outputs = 2}, {{2, 3, 1, 1}}, {{Relu{}}}};  // a product and our kernels
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

TEST_CASE("the tested backend is the named one, and cudnn is that of the named directory") {
  const auto name_of = [](const char* backend, const char* directory) {
    const auto set = [](const char* name, const char* value) {
      value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
    };
    set("LAMINA_TEST_BACKEND", backend);
    set("LAMINA_TEST_CUDNN", directory);
    const std::string name = tested_backend("eigen");
    set("LAMINA_TEST_BACKEND", nullptr);
    set("LAMINA_TEST_CUDNN", nullptr);
    return name;
  };
  CHECK(name_of(nullptr, nullptr) == "eigen");
  CHECK(name_of(nullptr, "/somewhere") == "eigen");
  CHECK(name_of("cudnn", nullptr) == "cudnn");
  CHECK(name_of("cudnn", "") == "cudnn");
  CHECK(name_of("cudnn", "/somewhere") == "cudnn:/somewhere");
  CHECK(name_of("cudnn:/elsewhere", "/somewhere") == "cudnn:/elsewhere");
  CHECK(name_of("cuda", "/somewhere") == "cuda");
}
