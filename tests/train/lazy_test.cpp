// Lazy updates of an embedding's table: the rows that change, the formula, PyTorch's losses, and refusals.

#include "lamina/safetensors.h"
#include "lamina/workloads.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"
#include "tests/train/runs.h"

using namespace lamina::test;

namespace {

constexpr int vocabulary = 37, features = 5;

Graph mean_of_rows() {
  Graph graph("mean of rows");
  Value x = global_average_pool(
      embedding(graph.input({2, 1, 3, 1}, "ids"), "table", {.vocabulary = vocabulary, .features = features}));
  fully_connected(x, "fc", {.outputs = 4});
  return graph;
}

Options lazy(const Optimiser& optimiser, DType dtype = DType::f64) {
  return {.dtype = dtype, .optimiser = optimiser, .table_updates = TableUpdates::lazy};
}

/// Gradients of the table. Some rows are 0, and one row has a gradient only in its last feature.
Values sparse_gradient(std::uint64_t key) {
  Values all = normal(Shape{vocabulary, features, 1, 1}, key);
  for (std::size_t row = 0; row < vocabulary; ++row)
    for (std::size_t f = 0; f < features; ++f)
      if (row % 3 != key % 3 || (row == 3 + key % 3 && f + 1 < features)) all[row * features + f] = 0;
  return all;
}

bool named(const Values& gradient, std::size_t row) {
  for (std::size_t f = 0; f < features; ++f)
    if (gradient[row * features + f] != 0) return true;
  return false;
}

const std::vector<Optimiser> lazy_optimisers = {Sgd{},      RmsProp{}, Adagrad{},
                                                Adadelta{}, Adam{},    KerasAdam{.epsilon = 1e-3}};

}  // namespace

TEST_CASE("a lazy update has the dense update's bits in rows with a gradient, and keeps all other rows") {
  for (const auto& backend : tested_backends())
    for (const DType dtype : {DType::f64, DType::f32})
      for (const Optimiser& optimiser : lazy_optimisers) {
        INFO(backend->describe() << ", " << to_string(dtype) << ", " << to_string(optimiser));
        Options options = lazy(optimiser, dtype);
        Plan here(mean_of_rows(), *backend, options);
        options.table_updates = TableUpdates::dense;
        Plan dense(mean_of_rows(), *backend, options);
        for (std::uint64_t step = 1; step <= 4; ++step) {
          const Values gradient = sparse_gradient(step);
          const std::vector<Values> before = everything(here);
          copy_parameters(here, dense);  // the dense plan continues from the lazy plan's values
          for (const std::string& s : here.optimiser_state_names())
            write(dense, dense.optimiser_state(s), read(here, here.optimiser_state(s)));
          for (Plan* plan : {&here, &dense}) {
            run_passes(*plan);
            write(*plan, plan->parameter_gradient("table.weight"), gradient);
            plan->update(0.1);
          }
          const std::vector<Values> after = everything(here), wanted = everything(dense);
          for (std::size_t k = 0; k < after.size(); ++k) {
            const bool table = after[k].size() == std::size_t{vocabulary} * features;
            for (std::size_t i = 0; i < after[k].size(); ++i)
              if (const auto want = !table || named(gradient, i / features) ? wanted[k][i] : before[k][i];
                  after[k][i] != want)
                FAIL_CHECK("tensor " << k << ", element " << i << ": " << after[k][i] << ", wanted " << want);
          }
        }
      }
}

TEST_CASE("a lazy update changes a row whose gradient is NaN, and clears accumulated gradients") {
  for (const auto& backend : tested_backends()) {
    Options options = lazy(Adam{});
    options.accumulate_parameters = true;
    Plan plan(mean_of_rows(), *backend, options);
    run_passes(plan);
    Values gradient(std::size_t{vocabulary} * features);
    gradient[2 * features] = std::numeric_limits<double>::quiet_NaN();
    gradient[4 * features + 1] = 1;
    write(plan, plan.parameter_gradient("table.weight"), gradient);
    plan.update(0.1);
    const Values table = read(plan, plan.parameter("table.weight"));
    CHECK(std::isnan(table[2 * features]));
    for (const double value : read(plan, plan.parameter_gradient("table.weight"))) CHECK(value == 0);
    for (const double value : read(plan, plan.parameter_gradient("fc.weight"))) CHECK(value == 0);
  }
}

TEST_CASE("100 steps with lazy updates have the losses of PyTorch's SparseAdam, sparse SGD and Adagrad to 1e-9") {
  const TensorFile golden = read_safetensors(test::data("goldens/lazy_training.safetensors"));
  Graph graph("words");
  const Value classes = graph.input({8, 1, 1, 1}, "labels");
  Value x = embedding(graph.input({8, 1, 6, 1}, "ids"), "table", {.vocabulary = 40, .features = 7});
  softmax_cross_entropy(fully_connected(global_average_pool(x), "fc", {.outputs = 5}), classes);
  struct Run {
    std::string name;
    Optimiser optimiser;
    double rate;
    bool lazily;
  };
  for (const auto& backend : tested_backends()) {
    for (const Run& run : {Run{"sparse_adam", KerasAdam{}, 0.05, true}, Run{"sparse_sgd", Sgd{}, 0.5, true},
                           Run{"sparse_adagrad", Adagrad{}, 0.1, true}, Run{"dense_adam", KerasAdam{}, 0.05, false}}) {
      Options options = lazy(run.optimiser);
      if (!run.lazily) options.table_updates = TableUpdates::dense;
      Plan plan(graph, *backend, options);
      INFO(backend->describe() << ", " << run.name);
      CHECK(worst_loss(plan, golden, "ids", golden.at("losses." + run.name).values, constant_rate(run.rate)) < 1e-9);
    }
  }
  // The two algorithms really differ.
  CHECK(std::abs(golden.at("losses.sparse_adam").values.back() - golden.at("losses.dense_adam").values.back()) > 1e-3);
}

TEST_CASE("a Trainer with lazy updates can evaluate, and a Trainer with dense updates refuses its checkpoint") {
  const Folder folder;
  PreparedWorkload ready = prepare(workload("imdb_fasttext"), {.share = 0.01, .width_divisor = 8});
  ready.options.plan.table_updates = TableUpdates::lazy;
  ready.options.checkpoint = folder / "lazy.safetensors";
  CHECK(Trainer(ready.graph, oracle(), *ready.training, ready.options).train(1).back().validation.loss > 0);
  CHECK(Trainer(ready.graph, oracle(), *ready.training, ready.options).resumed());
  ready.options.plan.table_updates = TableUpdates::dense;
  CHECK_THROWS_AS(Trainer(ready.graph, oracle(), *ready.training, ready.options), UsageError);
}

TEST_CASE("lazy updates are refused with the reason if no row could be skipped") {
  const auto plan = [&](const Graph& graph, const Options& options) { Plan made(graph, oracle(), options); };
  for (const Optimiser& moving : {Optimiser(Sgd{.momentum = 0.9}), Optimiser(KerasSgd{.momentum = 0.9}),
                                  Optimiser(AdamW{}), Optimiser(Adam{.weight_decay = 0.1})}) {
    INFO(to_string(moving));
    CHECK_THROWS_AS(plan(mean_of_rows(), lazy(moving)), UsageError);
  }
  Options options = lazy(Adam{});
  options.clip_norm = 1;
  CHECK_THROWS_AS(plan(mean_of_rows(), options), UsageError);
  options = lazy(Adam{});
  options.optimiser.reset();
  CHECK_THROWS_AS(plan(mean_of_rows(), options), UsageError);
  Graph graph("no table");
  fully_connected(graph.input({2, 3, 1, 1}), "fc", {.outputs = 4});
  CHECK_THROWS_AS(plan(graph, lazy(Adam{})), UsageError);
}
