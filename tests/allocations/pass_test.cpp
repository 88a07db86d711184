// A pass allocates no memory: the plan has already allocated all that the pass needs.

#include <variant>

#include "counter.h"
#include "lamina/nets.h"
#include "lamina/workloads.h"
#include "tests/eigen/sets.h"
#include "tests/support/backend.h"
#include "tests/support/cases/random_graph.h"

using namespace lamina;
using lamina::test::allocations;

namespace {

/// The number of memory requests in a pass, after the first pass has started the threads.
std::size_t in_a_pass(Plan& plan) {
  const auto pass = [&] {
    plan.forward();
    if (plan.options().mode == Mode::training) plan.backward();
    if (plan.options().optimiser) plan.update(0.1);
  };
  pass();
  const std::size_t before = allocations;
  pass();
  return allocations - before;
}

/// A graph with enough channels for every algorithm: 3x3 convolutions with and without a ReLU, groups or a stride, a
/// 5x5 and a 1x1 convolution, batch norm, fully connected.
Graph wide_graph() {
  Graph graph("wide");
  Value x = graph.input({2, 32, 14, 14});
  x = relu(conv(x, "conv1", {.channels = 48, .kernel = 3, .pad = 1}));
  Value y = conv(x, "conv2", {.channels = 48, .kernel = 3, .pad = 1, .bias = false});
  x = relu(add(batch_norm(y, "bn2"), x));
  x = relu(conv(x, "conv3", {.channels = 64, .kernel = 3, .pad = 1, .groups = 2}));
  x = relu(conv(x, "conv4", {.channels = 64, .kernel = 5, .pad = 2, .groups = 2}));
  x = conv(x, "conv5", {.channels = 40, .kernel = 1});
  x = relu(conv(x, "conv6", {.channels = 32, .kernel = 3, .stride = 2, .pad = 1}));
  fully_connected(x, "fc", {.outputs = 50});
  return graph;
}

}  // namespace

TEST_CASE("the counter of allocations counts") {
  const std::size_t before = allocations;
  std::vector<char> bytes(1000);
  bytes[0] = 1;
  CHECK(allocations > before);
}

TEST_CASE("no pass and no update allocates, in training or inference, on one thread or two, in every type") {
  for (const char* net : {"alexnet", "inception_v1", "resnet18", "resnet200"}) {
    const Graph graph = nets::build(net, {.batch = 2, .image = 64, .width_divisor = 8});
    for (const int threads : {1, 2}) {
      const auto backend = make_backend("eigen", {.threads = threads});
      for (const Mode mode : {Mode::training, Mode::inference})
        for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
          Options options{.mode = mode,
                          .dtype = dtype,
                          .keep = threads == 1 ? Keep::all : Keep::cheap,
                          .input_gradient = mode == Mode::training};
          if (mode == Mode::training) {
            options.optimiser = Adam{};
            options.clip_norm = 1;
          }
          Plan plan(graph, *backend, options);
          INFO(net << ", " << threads << " threads, " << to_string(dtype)
                   << (mode == Mode::training ? ", training" : ", inference"));
          CHECK(in_a_pass(plan) == 0);
        }
    }
  }
}

TEST_CASE("no pass and no update of a random graph allocates, and its plan's memory is as predicted", "[random]") {
  std::set<std::size_t> ops;  // indices in the variant Op
  test::Dice dice(test::seed() ^ 0xA110C);
  for (int round = 0; round < 200; ++round) {
    const Graph graph = test::random_graph(dice, dice(3, 14));
    const auto backend = make_backend("eigen", {.threads = dice(1, 2)});
    Options options;
    options.dtype = static_cast<DType>(dice(0, 3));
    options.keep = dice.chance(0.5) ? Keep::all : Keep::cheap;
    options.mode = dice.chance(0.2) ? Mode::inference : Mode::training;
    if (options.mode == Mode::training) {
      options.input_gradient = dice.chance(0.5);
      options.optimiser = Adam{};
      options.clip_norm = 1;
      if (options.dtype != DType::f64 && is_loss(graph.nodes().back().op)) options.loss_scale = 8;
    }
    Plan plan(graph, *backend, options);
    INFO("seed " << test::seed() << ", round " << round);
    CHECK(in_a_pass(plan) == 0);
    CHECK(predict_memory(graph, *backend, options).total() == plan.memory().total());
    if (options.mode == Mode::training)
      for (const Node& node : graph.nodes()) ops.insert(node.op.index());
  }
  CHECK(ops.size() == std::variant_size_v<Op>);  // every op occurred in a training
}

TEST_CASE("a training of each workload allocates in its first steps only, and its memory is as predicted") {
  constexpr std::int64_t warm = 4;
  for (const Workload& each : workloads())
    for (const TableUpdates updates : {TableUpdates::dense, TableUpdates::lazy}) {
      if (updates == TableUpdates::lazy && each.name != "imdb_fasttext") continue;
      const auto backend = make_backend("eigen", {.threads = 2});
      PreparedWorkload ready = prepare(each, {.share = 0.01, .width_divisor = 8, .batch = 8});
      std::size_t at_warm = 0, at_last = 0;
      std::int64_t last = 0;
      ready.options.plan.table_updates = updates;
      ready.options.validation = nullptr;
      ready.options.threads = 0;  // this thread prepares the batches
      ready.options.after_batch = [&](const Progress& at) {
        if (at.batch == warm) at_warm = allocations;
        if (at.batch < at.batches) at_last = allocations, last = at.batch;
      };
      Trainer trainer(ready.graph, *backend, *ready.training, ready.options);
      trainer.train(1);
      INFO(each.name << ", " << to_string(updates) << " updates");
      CHECK(last > warm + 20);
      CHECK(at_last == at_warm);
      const Options options{.optimiser = ready.options.optimiser, .table_updates = updates};
      CHECK(predict_memory(ready.graph, *backend, options).total() == trainer.plan().memory().total());
    }
}

TEST_CASE("no algorithm allocates in a pass, with any instruction set of this machine") {
  const Graph graph = wide_graph();
  for (const auto* set : test::sets_here())
    for (const int threads : {1, 2}) {
      const auto backend = make_backend("eigen", {.threads = threads, .instruction_set = set->name});
      for (const std::string algorithm : {"", "im2col_gemm", "winograd_2x2", "winograd_4x4", "gemm", "direct"})
        for (const Mode mode : {Mode::training, Mode::inference}) {
          const Options options{.mode = mode,
                                .choice = {.algorithm = {algorithm, algorithm, algorithm}},
                                .input_gradient = mode == Mode::training};
          Plan plan(graph, *backend, options);
          INFO(set->name << ", " << threads << " threads, '" << algorithm << "', "
                         << (mode == Mode::training ? "training" : "inference"));
          const auto taken = [&](const std::string& name) {
            return std::any_of(plan.calls().begin(), plan.calls().end(),
                               [&](const Call& call) { return call.algorithm == name; });
          };
          CHECK(taken(algorithm.empty() ? "winograd_4x4" : algorithm));
          CHECK(in_a_pass(plan) == 0);
        }
    }
}

TEST_CASE("an LSTM and a GRU on numbers or on ids allocate nothing in a pass") {
  for (const int vocabulary : {0, 11}) {
    Graph graph("bidirectional");
    const Value x = graph.input({6, vocabulary == 0 ? 5 : 1, 20, 1});
    const Value forward = lstm(x, "forward", {.hidden = 9, .vocabulary = vocabulary});
    const Value backward = gru(x, "backward", {.hidden = 9, .reverse = true, .vocabulary = vocabulary});
    fully_connected(concat({forward, backward}), "fc", {.outputs = 3});
    for (const int threads : {1, 2})
      for (const Mode mode : {Mode::training, Mode::inference}) {
        const Options options{.mode = mode, .input_gradient = mode == Mode::training};
        const auto backend = make_backend("eigen", {.threads = threads});
        Plan plan(graph, *backend, options);
        INFO(threads << " threads, " << (mode == Mode::training ? "training" : "inference") << ", ids below "
                     << vocabulary);
        CHECK(in_a_pass(plan) == 0);
      }
  }
}
