// The rows of networks and layers, the work that they count, and the peaks beside them.

#include "bench/rows/rows.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "bench/context/context.h"
#include "bench/io/text.h"
#include "bench/measure/layers.h"
#include "bench/rows/meter.h"
#include "bench/timing/stopwatch.h"
#include "lamina/error.h"
#include "tests/support/backend.h"
#include "tests/support/catch.h"
#include "tests/support/wrapped_backend.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("one pass feeds the forward, backward and total rows of a network") {
  Session session;
  const std::vector<Row> rows = net_rows(session, {}, {"resnet18", "eigen"});
  REQUIRE(rows.size() == 4);
  REQUIRE(rows[0].group == rows[2].group);
  REQUIRE(rows[0].group != rows[3].group);
  REQUIRE(rows[2].work().flops == rows[0].work().flops + rows[1].work().flops);
}

TEST_CASE("the distinct layers of a network stand for all of its layers") {
  Session session;
  for (const char* network : {"alexnet", "resnet50", "inception_v1", "mnist_mlp"}) {
    const Config c{network, "eigen"};
    std::map<std::string, int> layers;  // number of layers by node; a node has several rows
    for (const Row& row : layer_rows(session, {}, c)) {
      REQUIRE(row.group->layers >= 1);
      layers[row.key["layer"]] = row.group->layers;
    }
    int sum = 0;
    for (const auto& [node, count] : layers) sum += count;
    CAPTURE(network);
    REQUIRE(sum == static_cast<int>(session.plans.graph(c).nodes().size()) - 1);
  }
}

TEST_CASE("a pass counts two operations per multiply-add and all other operations, but no unwanted image gradient") {
  Session session;
  const Graph graph = session.plans.graph({"vgg16", "eigen", DType::f32, Layout::nchw, 1});
  const double products = 2.0 * 15'470'264'320;
  const GraphCost cost = graph_cost(graph, DType::f32, true);
  REQUIRE(cost.forward.flops > products);
  REQUIRE(cost.forward.flops < 1.01 * products);
  REQUIRE(cost.backward.flops > 2 * products);
  REQUIRE(cost.backward.flops < 2.02 * products);
  const Node& first = graph.nodes()[1];
  const double without = graph_cost(graph, DType::f32, false).backward.flops;
  REQUIRE(cost.backward.flops - without ==
          Approx(lamina::cost(first.op, input_shapes(graph, first), Pass::backward_data).flops));
}

TEST_CASE("a layer that reads labels or ids runs every pass that it has, without a gradient of the labels or ids") {
  Session session;
  Backend& backend = session.backends.at("eigen");
  const Config c{"", "eigen", DType::f32, Layout::nchw, 4};
  Graph graph("classes of words");
  const Value labels = graph.input({4, 1, 1, 1}, "labels");
  Value x = embedding(graph.input({4, 1, 6, 1}, "ids"), "words", {.vocabulary = 9, .features = 5});
  x = lstm(x, "lstm", {.hidden = 3, .steps = Steps::last});
  softmax_cross_entropy(x, labels, "loss");
  Graph letters("letters");
  lstm(letters.input({4, 1, 6, 1}, "ids"), "lstm of ids", {.hidden = 3, .vocabulary = 9});
  const auto runs = [&](const Graph& of, const char* name, Pass pass) {
    const Node& node = of.node(name);
    const auto run = open_layer(backend, c, of, node, pass, {}, {}, std::make_shared<std::optional<Reference>>());
    return run->pass()[0].seconds > 0 && run->pass()[0].seconds > 0 && run->facts().same_bits &&
           run->facts().runs_compared >= 2;
  };
  for (const char* name : {"words", "lstm", "loss"}) CHECK(runs(graph, name, Pass::forward));
  for (const char* name : {"lstm", "loss"}) CHECK(runs(graph, name, Pass::backward_data));
  for (const char* name : {"words", "lstm"}) CHECK(runs(graph, name, Pass::backward_params));
  CHECK(runs(letters, "lstm of ids", Pass::backward_params));
}

TEST_CASE("a layer with several algorithms also has a row for the backend's pick, which names the picked algorithm") {
  RunOptions options;
  options.configs.batches = {1};
  Session session(options);
  const Config c{"cifar10_cnn", "eigen", DType::f32, Layout::nchw, 1};
  std::map<std::string, std::set<std::string>> algorithms;  // names by layer and pass
  std::map<std::string, std::string> picked;
  for (const Row& row : layer_rows(session, {}, c)) {
    const std::string layer = row.key["layer"].get<std::string>() + row.key["part"].get<std::string>();
    algorithms[layer].insert(row.key["algorithm"]);
    if (row.key["algorithm"] == "default") picked[layer] = row.group->open()->algorithm();
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

TEST_CASE("the times of a pass's calls sum to the time of the pass") {
  RunOptions options;
  Session session(options);
  const Config c{"cifar10_cnn", "eigen", DType::f32, Layout::nchw, 4};
  Plan plan(session.plans.graph(c), session.backends.at("eigen"), session.plans.options(c, Mode::training));
  CallStopwatch by_call(plan);
  Stopwatch stopwatch(plan.backend().device());
  double best = 0;  // largest share of 20 tries; other processes may run between calls in some tries
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

/// A backend whose arithmetic units have the given peak.
class Rated final : public test::WrappedBackend {
 public:
  explicit Rated(std::function<double(DType)> peak) : WrappedBackend(test::oracle()), peak_(std::move(peak)) {}
  explicit Rated(double flops) : Rated([flops](DType dtype) { return dtype == DType::f32 ? flops : 3 * flops; }) {}
  double peak_flops_per_second(DType dtype) override { return peak_(dtype); }

 private:
  std::function<double(DType)> peak_;
};

/// A backend with a rising clock: its first peak is 1 GFLOP/s, and each next peak is 1 GFLOP/s higher.
std::unique_ptr<Backend> rising() {
  return std::make_unique<Rated>([asked = 0](DType) mutable { return 1e9 * ++asked; });
}

}  // namespace

TEST_CASE("the peak is the measured rate of the backend's arithmetic units, or else the rate of a large product") {
  Session session;
  session.backends.put("rated", std::make_unique<Rated>(7e9));
  session.backends.put("unrated", std::make_unique<Rated>(0));
  const Peak &f32 = session.peaks.of("rated", DType::f32), &f64 = session.peaks.of("rated", DType::f64);
  CHECK(f32.in_registers);
  CHECK(f32.flops_per_second == 7e9);
  CHECK(f64.flops_per_second == 21e9);
  CHECK_THAT(f32.description, ContainsSubstring("registers"));
  const double product = session.peaks.product_flops_per_second("unrated", DType::f32);
  CHECK(product > 0);
  CHECK(session.peaks.of("unrated", DType::f32).flops_per_second == product);  // measured once
  CHECK_FALSE(session.peaks.of("unrated", DType::f32).in_registers);
  CHECK(session.peaks.known().at({"unrated", DType::f32}).description == Peaks::product_description("unrated"));
  CHECK(session.peaks.of("unrated", DType::u64).flops_per_second == 0);
}

TEST_CASE("a processor's peak is a median of measurements, and a pass's peak is measured before and after the pass") {
  Session session;
  session.backends.put("rising", rising());
  const Peak& peak = session.peaks.of("rising", DType::f32);
  const double last = peak.most;
  CHECK(last > 4e9);
  CHECK(peak.flops_per_second == (1e9 + last) / 2);
  PeakBeside beside(session.peaks, "rising", DType::f32);
  beside.begin();
  const bench::Moment first = beside.end(), second = beside.end();
  CHECK(first.flops_per_second == last + 1.5e9);
  CHECK(second.flops_per_second == last + 2.5e9);
  CHECK(first.clock_mhz > 100);
  std::vector<Sample> samples(2);
  set_moment(samples, second);
  CHECK(samples[1].peak_flops_per_second == second.flops_per_second);
}

TEST_CASE("no peak is measured beside a pass on a GPU, or on a backend that cannot measure its units' rate") {
  Session session;
  session.backends.put("cuda", rising());
  session.backends.put("unrated", std::make_unique<Rated>(0));
  for (const char* backend : {"cuda", "unrated"}) {
    PeakBeside beside(session.peaks, backend, DType::f32);
    beside.begin();
    CHECK(beside.end().flops_per_second == 0);
  }
  CHECK(session.peaks.of("cuda", DType::f32).flops_per_second == 1e9);  // measured once
}

TEST_CASE("the first guess of the time assumes that each row runs at half of its backend's peak") {
  Session session;
  std::vector<Row> rows;
  for (const char* backend : {"eigen", "cuda-host"})
    for (Row& row : net_rows(session, {}, {"mnist_mlp", backend})) rows.push_back(std::move(row));
  const auto guess = [&](double eigen_flops, double emulator_flops) {
    Session rated;
    rated.backends.put("eigen", std::make_unique<Rated>(eigen_flops));
    rated.backends.put("cuda-host", std::make_unique<Rated>(emulator_flops));
    return bench::Progress(rated.peaks, rows, 3).left_seconds();
  };
  double flops = 0;
  for (const Row& row : rows)
    if (row.part == 0 && row.group->config.backend == "eigen") flops += 4 * row.group->flops_per_pass;
  CHECK(guess(1e4, 1e12) == Approx(flops / 5e3).epsilon(0.01));
  CHECK(guess(1e4, 2e4) == Approx(1.5 * flops / 5e3).epsilon(0.01));
}

TEST_CASE("bytes and seconds are printed in readable units") {
  REQUIRE(bytes_text(17) == "17 B");
  REQUIRE(bytes_text(4.5 * 1024 * mebibyte) == "4.50 GiB");
  REQUIRE(seconds_text(13.2) == "14 s");
  REQUIRE(seconds_text(200) == "3 min 20 s");
  REQUIRE(seconds_text(7500) == "2 h 5 min");
}

TEST_CASE("a plan moves fewer bytes than its single ops if units are fused and joins are views, and never more") {
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

TEST_CASE("a network's rows count the bytes that their plan moves") {
  RunOptions options;
  options.configs.batches = {2};
  Session session(options);
  const Config c{"mnist_cnn", "eigen", DType::f32, Layout::nchw, 2};
  const Plan plan(session.plans.graph(c), session.backends.at("eigen"), session.plans.options(c, Mode::training));
  const GraphCost moved = plan_cost(plan);
  const std::vector<Row> rows = net_rows(session, {}, c);
  CHECK(rows[0].group->open()->bytes() ==
        std::vector<double>{moved.forward.bytes, moved.backward.bytes, moved.forward.bytes + moved.backward.bytes});
  CHECK(rows[3].group->open()->bytes().size() == 1);
}
