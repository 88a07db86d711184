// Which rows there are, and what is counted of them.

#include "rows/rows.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "context/context.h"
#include "io/quantities.h"
#include "lamina/error.h"
#include "measure/stopwatch.h"
#include "rows/progress.h"
#include "support/backend.h"
#include "support/catch.h"
#include "support/wrapped_backend.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("one pass feeds the forward, backward and total rows of a network") {
  Workshop workshop{Settings{}};
  const std::vector<Row> rows = net_rows(workshop, {"resnet18", "eigen"});
  REQUIRE(rows.size() == 4);
  REQUIRE(rows[0].group == rows[2].group);
  REQUIRE(rows[0].group != rows[3].group);
  REQUIRE(rows[2].group->work[2].flops == rows[0].group->work[0].flops + rows[0].group->work[1].flops);
}

TEST_CASE("the distinct layers of a network stand for all of its layers") {
  Workshop workshop{Settings{}};
  for (const char* network : {"alexnet", "resnet50", "inception_v1", "mnist_mlp"}) {
    const Case c{network, "eigen"};
    std::map<std::string, int> layers;  // by node: the rows of one node differ in pass and algorithm
    for (const Row& row : layer_rows(workshop, c)) {
      REQUIRE(row.group->layers >= 1);
      const std::size_t start = row.name.find('/', 6) + 1;
      layers[row.name.substr(start, row.name.find('/', start) - start)] = row.group->layers;
    }
    int sum = 0;
    for (const auto& [node, count] : layers) sum += count;
    CAPTURE(network);
    REQUIRE(sum == static_cast<int>(workshop.graph(c).nodes().size()) - 1);
  }
}

TEST_CASE("a forward pass counts two operations for every multiply-add, and some more") {
  Workshop workshop{Settings{}};
  const Graph graph = workshop.graph({"vgg16", "eigen", DType::f32, Layout::nchw, 1});
  const double products = 2.0 * 15'470'264'320;
  const GraphCost cost = graph_cost(graph, DType::f32, true);
  REQUIRE(cost.forward.flops > products);
  REQUIRE(cost.forward.flops < 1.01 * products);
  REQUIRE(cost.backward.flops > 2 * products);
  REQUIRE(cost.backward.flops < 2.02 * products);
}

TEST_CASE("an image gradient that nobody wants is not counted") {
  Workshop workshop{Settings{}};
  const Graph graph = workshop.graph({"vgg16", "eigen", DType::f32, Layout::nchw, 1});
  const Node& first = graph.nodes()[1];
  const double with = graph_cost(graph, DType::f32, true).backward.flops;
  const double without = graph_cost(graph, DType::f32, false).backward.flops;
  REQUIRE(with - without == Approx(cost(first.op, input_shapes(graph, first), Pass::backward_data).flops));
}

TEST_CASE("rows of a layer give times on a backend that runs") {
  Settings options;
  options.batches = {2};
  Workshop workshop(options);
  std::set<std::string> passes;
  for (const Row& row : layer_rows(workshop, {"mnist_mlp", "eigen", DType::f32, Layout::nchw, 2})) {
    CAPTURE(row.name);
    const std::vector<Sample> samples = row.group->open()->pass();
    REQUIRE(samples.size() == 1);
    REQUIRE(samples[0].seconds > 0);
    passes.insert(row.group->parts[0]);
  }
  REQUIRE(passes == std::set<std::string>{"forward", "backward_data", "backward_params"});
}

TEST_CASE("where a layer has a choice of algorithms, a row is that of the backend's own, which it tells") {
  Settings options;
  options.batches = {1};
  Workshop workshop(options);
  const Case c{"cifar10_cnn", "eigen", DType::f32, Layout::nchw, 1};
  std::map<std::string, std::set<std::string>> algorithms;  // by node and pass
  std::map<std::string, std::string> picked;
  for (const Row& row : layer_rows(workshop, c)) {
    const std::size_t backend = row.name.find("/eigen/"), end = row.name.find('/', backend + 7);
    const std::string layer = row.name.substr(0, backend), algorithm = row.name.substr(backend + 7, end - backend - 7);
    algorithms[layer].insert(algorithm);
    if (algorithm == "default") picked[layer] = row.group->open()->algorithm();
  }
  REQUIRE_FALSE(picked.empty());
  for (const auto& [layer, names] : algorithms) {
    CAPTURE(layer);
    REQUIRE(names.contains("default") == (names.size() > 1));
    if (names.contains("default")) {
      REQUIRE(picked.at(layer) != "default");
      REQUIRE(names.contains(picked.at(layer)));
    }
  }
}

TEST_CASE("the calls of a pass sum to the pass") {
  Settings options;
  Workshop workshop(options);
  const Case c{"cifar10_cnn", "eigen", DType::f32, Layout::nchw, 4};
  Plan plan(workshop.graph(c), workshop.backend("eigen"), workshop.plan_options(c, Mode::training));
  CallStopwatch by_call(plan);
  Stopwatch stopwatch(plan.backend().device());
  double best = 0;  // other processes may take the processor between two calls, but hardly every time
  for (int i = 0; i < 20; ++i) {
    for (const bool forward : {true, false}) {
      std::vector<double> calls;
      const double whole = stopwatch.time([&] { calls = forward ? by_call.forward() : by_call.backward(); }).seconds;
      REQUIRE(calls.size() == (forward ? plan.forward_calls() : plan.calls().size() - plan.forward_calls()));
      const double sum = std::accumulate(calls.begin(), calls.end(), 0.0);
      REQUIRE(sum <= whole);
      best = std::max(best, sum / whole);
    }
  }
  REQUIRE(best > 0.95);
}

namespace {

constexpr auto wait = std::chrono::milliseconds(60);

/// A backend whose library takes a while to open, and its device another one; both only once.
class SlowToOpen final : public test::WrappedBackend {
 public:
  SlowToOpen() : WrappedBackend(test::oracle()) {}
  std::string available() const override {
    if (!std::exchange(asked_, true)) std::this_thread::sleep_for(wait);
    return {};
  }
  Device& device() override {
    if (!std::exchange(opened_, true)) std::this_thread::sleep_for(wait);
    return WrappedBackend::device();
  }

 private:
  mutable bool asked_ = false;
  bool opened_ = false;
};

}  // namespace

TEST_CASE("rows of first calls come before all others, and no peak is measured before they ran") {
  Settings options;
  options.backends = {"eigen"};
  options.batches = {1};
  Workshop workshop(options);
  std::vector<Row> rows = all_rows(workshop);
  const auto is_setup = [](const Row& row) { return row.name.starts_with("setup/"); };
  CHECK(std::is_partitioned(rows.begin(), rows.end(), is_setup));
  CHECK(rows.front().name == "setup/alexnet/device/eigen/f32/nchw/batch:1");
  std::erase_if(rows, [](const Row& row) { return row.name.find("/mnist_mlp/") == std::string::npos; });
  const Progress progress(workshop, rows);
  CHECK(workshop.peaks().empty());
  std::erase_if(rows, is_setup);
  const Progress later(workshop, rows);
  CHECK(workshop.peaks().size() == 1);
}

namespace {

/// A backend that says what its units reach.
class Rated final : public test::WrappedBackend {
 public:
  explicit Rated(double flops) : WrappedBackend(test::oracle()), flops_(flops) {}
  double peak_flops(DType dtype) override { return dtype == DType::f32 ? flops_ : 3 * flops_; }

 private:
  double flops_;
};

}  // namespace

TEST_CASE("the peak is what a backend measures of its units, or a large product's rate where it measures nothing") {
  Workshop workshop{Settings{}};
  workshop.put("rated", std::make_unique<Rated>(7e9));
  workshop.put("unrated", std::make_unique<Rated>(0));
  const Peak &f32 = workshop.peak("rated", DType::f32), &f64 = workshop.peak("rated", DType::f64);
  CHECK(f32.in_registers);
  CHECK(f32.flops == 7e9);
  CHECK(f64.flops == 21e9);
  CHECK_THAT(f32.description(), ContainsSubstring("registers"));
  const double product = workshop.product_flops("unrated", DType::f32);
  CHECK(product > 0);
  CHECK(workshop.peak_flops("unrated", DType::f32) == product);  // measured once
  CHECK_FALSE(workshop.peak("unrated", DType::f32).in_registers);
  CHECK(workshop.peaks().at("unrated/f32").description() == Workshop::product_description());
  CHECK(workshop.peak_flops("unrated", DType::f16) == 0);
}

TEST_CASE("hours of cuda-host are refused as what they are, and hours of another backend are not") {
  Workshop workshop{Settings{}};
  std::vector<Row> rows;
  for (const char* backend : {"eigen", "cuda-host"})
    for (Row& row : net_rows(workshop, {"mnist_mlp", backend})) rows.push_back(std::move(row));
  const auto put = [&](double eigen_flops, double emulator_flops) {
    workshop = Workshop{Settings{}};
    workshop.put("eigen", std::make_unique<Rated>(eigen_flops));
    workshop.put("cuda-host", std::make_unique<Rated>(emulator_flops));
  };
  put(1e9, 1e9);
  const double work = 1e9 * Progress(workshop, rows).guessed_seconds_of("eigen");  // seconds at a peak of one a second
  put(work / 36000, 1e12);
  const Progress slow_eigen(workshop, rows);
  CHECK(slow_eigen.guessed_seconds() == Approx(36000).epsilon(0.01));
  CHECK(slow_eigen.guessed_seconds_of("eigen") == Approx(36000));
  CHECK_NOTHROW(check_duration(slow_eigen));
  put(work / 600, work / 7200);
  const Progress slow_emulator(workshop, rows);
  CHECK(slow_emulator.guessed_seconds_of("cuda-host") == Approx(7200));
  CHECK_THROWS_AS(check_duration(slow_emulator), UsageError);
  CHECK_THROWS_WITH(check_duration(slow_emulator), ContainsSubstring("cuda-host") && ContainsSubstring("2 h") &&
                                                       ContainsSubstring("all others about 10 min") &&
                                                       ContainsSubstring("--long_run"));
  put(work / 600, work / 3000);
  CHECK_NOTHROW(check_duration(Progress(workshop, rows)));
}

TEST_CASE("setup: opening library and device is timed once, whoever opens them, and told by every pass") {
  Settings options;
  options.backends = {"eigen"};
  options.batches = {1};
  Workshop workshop(options, [](const std::string&, const BackendOptions&) { return std::make_unique<SlowToOpen>(); });
  const std::vector<Row> rows = setup_rows(workshop, {"mnist_mlp", "eigen", DType::f32, Layout::nchw, 1});
  CHECK(rows.front().group->parts == std::vector<std::string>{"device", "graph", "plan", "first_pass"});
  const double both = 2 * std::chrono::duration<double>(wait).count();
  if (GENERATE(false, true)) lasting_facts(workshop);  // which describe what is open
  const std::unique_ptr<Measurement> measurement = rows.front().group->open();
  const std::vector<Sample> first = measurement->pass(), second = measurement->pass();
  REQUIRE(first.size() == 4);
  CHECK(first[0].seconds >= both);
  CHECK(first[0].seconds < 10 * both);
  CHECK(second[0].seconds == first[0].seconds);
}

TEST_CASE("a backend that was asked for and not built has rows that refuse") {
  Settings options;
  options.backends = {"cudnn"};
  Workshop workshop(options);
  const std::vector<Row> rows = all_rows(workshop);
  REQUIRE_FALSE(rows.empty());
  REQUIRE_THROWS_AS(rows.front().group->open(), Unsupported);
}

TEST_CASE("a backend that does not exist is an error with near names") {
  Settings options;
  options.backends = {"eigne"};
  Workshop workshop(options);
  REQUIRE_THROWS_WITH(workshop.backend_names(), ContainsSubstring("eigen"));
}

TEST_CASE("bytes and seconds are written for people") {
  REQUIRE(bytes_text(17) == "17 B");
  REQUIRE(bytes_text(4.5 * 1024 * mebibyte) == "4.50 GiB");
  REQUIRE(seconds_text(13.2) == "14 s");
  REQUIRE(seconds_text(200) == "3 min 20 s");
  REQUIRE(seconds_text(7500) == "2 h 5 min");
}

TEST_CASE("a plan moves less than its ops alone where units are fused and joins are views, and never more") {
  const auto backend = make_backend("eigen");
  for (const char* net : {"resnet18", "inception_v1", "alexnet"}) {
    CAPTURE(net);
    const Graph graph = nets::build(net, {.batch = 2, .image = 64, .width_divisor = 8});
    const GraphCost alone = graph_cost(graph, DType::f32, false);
    Options options;
    const GraphCost fused = plan_cost(Plan(graph, *backend, options));
    options.fuse = false;
    const GraphCost apart = plan_cost(Plan(graph, *backend, options));
    CHECK(fused.forward.bytes < apart.forward.bytes);
    CHECK(fused.backward.bytes < apart.backward.bytes);
    CHECK(apart.forward.bytes <= alone.forward.bytes);
    CHECK(apart.backward.bytes <= alone.backward.bytes);
    CHECK(fused.forward.flops <= alone.forward.flops);
    CHECK(fused.forward.flops > 0.99 * alone.forward.flops);
  }
}

TEST_CASE("a network's rows count the bytes of their plan") {
  Settings options;
  options.batches = {2};
  Workshop workshop(options);
  const Case c{"mnist_cnn", "eigen", DType::f32, Layout::nchw, 2};
  const Plan plan(workshop.graph(c), workshop.backend("eigen"), workshop.plan_options(c, Mode::training));
  const GraphCost moved = plan_cost(plan);
  const std::vector<Row> rows = net_rows(workshop, c);
  CHECK(rows[0].group->open()->bytes() ==
        std::vector<double>{moved.forward.bytes, moved.backward.bytes, moved.forward.bytes + moved.backward.bytes});
  CHECK(rows[3].group->open()->bytes().size() == 1);
}
