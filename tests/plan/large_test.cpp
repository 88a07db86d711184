// Large graphs and large batches: planning time grows with the number of nodes, not with the number of images.

#include <ctime>

#include "lamina/lamina.h"
#include "tests/support/backend.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

// The limit of processor time, also for slow machines. If the time grew with the square of the number of nodes, it
// would be many minutes.
constexpr double most_seconds = 20;

double cpu_seconds(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

Value appended(Value x, const std::string& kind, int i) {
  if (kind == "conv") return conv(x, "conv" + std::to_string(i), {.channels = 2, .kernel = 1});
  if (kind == "dropout") return dropout(x, "drop" + std::to_string(i));
  if (kind == "add") return add(x, x);
  return relu(x);
}

}  // namespace

TEST_CASE("a chain of 10,000 nodes is planned in seconds") {
  const auto [kind, keep] = GENERATE(Catch::Generators::table<std::string, Keep>(
      {{"conv", Keep::all}, {"add", Keep::all}, {"relu", Keep::cheap}, {"dropout", Keep::cheap}}));
  INFO(kind << (keep == Keep::cheap ? ", cheap" : ""));
  const double seconds = cpu_seconds([&] {
    Graph graph("chain");
    Value x = graph.input({1, 2, 1, 1});
    for (int i = 0; i < 10000; ++i) x = appended(x, kind, i);
    const Options options{.keep = keep, .input_gradient = true};
    const Plan plan(graph, oracle(), options);
    CHECK(plan.memory().total() == predict_memory(graph, oracle(), options).total());
  });
  CHECK(seconds <= 2 * most_seconds);  // the graph is planned twice
}

TEST_CASE("memory for a billion images is predicted within seconds") {
  const std::string backend = GENERATE("eigen", "cuda-host");
  const std::string net = GENERATE("inception_v1", "resnet18");
  std::shared_ptr<Backend> made;
  try {
    made = make_backend(backend, {.threads = 2});
  } catch (const Unsupported&) {
    return;  // this build lacks cuda-host
  }
  const double seconds = cpu_seconds([&] {
    const MemoryReport one = predict_memory(nets::build(net, {.batch = 1}), *made);
    const MemoryReport many = predict_memory(nets::build(net, {.batch = 1 << 30}), *made);
    CHECK(many.arena / (1U << 29) > one.arena / 1000);
    CHECK(many.parameters == one.parameters);
  });
  CHECK(seconds <= most_seconds);
}

TEST_CASE("memory for the largest batch of a shape is predicted within seconds") {
  const int kernel = GENERATE(1, 3, 5);
  Graph graph("batch");
  conv(graph.input({std::numeric_limits<int>::max(), 2, 5, 5}), "conv", {.channels = 3, .kernel = kernel});
  std::size_t bytes = 0;
  CHECK(cpu_seconds([&] { bytes = predict_memory(graph, oracle(), {.input_gradient = true}).total(); }) <=
        most_seconds);
  CHECK(bytes > std::size_t{2} * 2 * 25 * 4 * std::numeric_limits<int>::max());
}

TEST_CASE("the use of a moved-from plan or graph is an error that says so") {
  Graph graph("moved");
  relu(graph.input({1, 2, 3, 3}));
  Plan plan(graph, oracle());
  const Plan to = std::move(plan);
  const Graph graph_to = std::move(graph);
  CHECK_THROWS_AS(plan.forward(), UsageError);             // NOLINT(bugprone-use-after-move): tested here
  CHECK_THROWS_AS(plan.memory(), UsageError);              // NOLINT(bugprone-use-after-move)
  CHECK_THROWS_AS(graph.nodes(), UsageError);              // NOLINT(bugprone-use-after-move)
  CHECK_THROWS_AS(graph.input({1, 1, 1, 1}), UsageError);  // NOLINT(bugprone-use-after-move)
  CHECK(to.graph().nodes().size() == graph_to.nodes().size());
}
