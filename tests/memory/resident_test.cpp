// A plan's memory is as predicted. The operating system counts the memory while the plan is made and runs a pass.

#include <malloc.h>

#include <fstream>

#include "lamina/nets.h"
#include "lamina/workloads.h"
#include "tests/support/backend.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace lamina;

namespace {

constexpr double mebibyte = 1 << 20;

/// This process's resident memory in bytes, as Linux counts it; null on other systems. The field VmRSS is the present
/// size, VmHWM the peak since the start of the process or since reset_peak().
std::optional<std::int64_t> resident_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1024;
  return {};
}

/// Resets the peak to the present size. Returns false if the system does not allow this.
bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << 5 << std::flush;
  return file.good();
}

/// The allowed memory of a plan besides its blocks: code that runs for the first time, stacks of threads, tables of the
/// planner, and unused parts of the last huge page (2 MiB) of each block.
constexpr double allowance_mebibytes = 8;

/// The largest growth of this process from the making of a plan to the end of a pass, and the plan's predicted size, in
/// MiB.
struct Growth {
  double measured, predicted;
};

Growth growth_of(const Graph& graph, Backend& backend, const Options& options) {
  const double predicted = static_cast<double>(predict_memory(graph, backend, options).total()) / mebibyte;
  malloc_trim(0);  // gives freed memory back, because reused memory would not count as growth
  REQUIRE(reset_peak());
  const std::int64_t before = resident_bytes("VmRSS").value();
  Plan plan(graph, backend, options);
  plan.forward();
  if (options.mode == Mode::training) plan.backward();
  if (options.optimiser) plan.update(0.1);
  CHECK(static_cast<double>(plan.memory().total()) / mebibyte == predicted);
  return {static_cast<double>(resident_bytes("VmHWM").value() - before) / mebibyte, predicted};
}

void check(const Growth& growth) {
  INFO("predicted " << growth.predicted << " MiB, measured " << growth.measured << " MiB");
  CHECK(growth.predicted >= 300);
  CHECK(growth.measured >= 0.99 * growth.predicted);
  CHECK(growth.measured <= 1.01 * growth.predicted + allowance_mebibytes);
}

}  // namespace

TEST_CASE("a plan's peak resident memory is within 1 % of the prediction") {
  if (!resident_bytes("VmRSS") || !resident_bytes("VmHWM") || !reset_peak())
    test::skip("this system does not report a process's peak resident memory");
  const auto backend = make_backend("eigen", {.threads = 2});
  SECTION("in training") {
    const Graph graph = nets::build("resnet18", {.batch = 16, .image = 224});
    check(growth_of(graph, *backend, {}));
  }
  SECTION("in training, with the state of an optimiser") {
    const Graph graph = nets::build("alexnet", {.batch = 4});
    check(growth_of(graph, *backend, {.optimiser = Adam{}, .clip_norm = 1}));
  }
  SECTION("in training, keeping only expensive values") {
    const Graph graph = nets::build("resnet18", {.batch = 16, .image = 224});
    check(growth_of(graph, *backend, {.keep = Keep::cheap}));
  }
  SECTION("in training, with a large table of an embedding") {
    Graph graph("words");
    const Value labels = graph.input({32, 1, 1, 1}, "labels");
    const Value words = embedding(graph.input({32, 1, 100, 1}, "ids"), "table", {.vocabulary = 500000, .features = 50});
    sigmoid_cross_entropy(fully_connected(global_average_pool(words), "fc", {.outputs = 1}), labels);
    Options options{.optimiser = Adam{}};
    SECTION("and dense updates") {}
    SECTION("and lazy updates") { options.table_updates = TableUpdates::lazy; }
    check(growth_of(graph, *backend, options));
  }
  SECTION("in training, of LSTMs in both directions") {
    Graph graph("lstms");
    const Value x = embedding(graph.input({240, 1, 100, 1}, "ids"), "table", {.vocabulary = 1000, .features = 128});
    const Value forward = lstm(x, "forward", {.hidden = 192, .steps = Steps::last});
    const Value backward = lstm(x, "backward", {.hidden = 192, .steps = Steps::last, .reverse = true});
    const Value logits = fully_connected(concat({forward, backward}), "fc", {.outputs = 1});
    sigmoid_cross_entropy(logits, graph.input({240, 1, 1, 1}, "labels"));
    check(growth_of(graph, *backend, {.optimiser = Adam{}}));
  }
  SECTION("in training, of a workload with its loss and its optimiser") {
    const PreparedWorkload ready = prepare(workload("mnist_cnn"), {.share = 0.01, .batch = 640});
    check(growth_of(ready.graph, *backend, {.optimiser = ready.options.optimiser}));
  }
  SECTION("in inference") {
    const Graph graph = nets::build("resnet18", {.batch = 64, .image = 224});
    check(growth_of(graph, *backend, {.mode = Mode::inference}));
  }
}
