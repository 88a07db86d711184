// Plans that share the parameters and state of another plan.

#include "tests/support/cases/plans.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

/// A graph with parameters, running statistics, a dropout's step, and parameters that are prepared in inference.
Graph graph_of(int batch, int outputs = 3) {
  Graph graph("of " + std::to_string(batch));
  Value x = graph.input({batch, 2, 6, 6});
  x = relu(batch_norm(conv(x, "conv", {.channels = 4, .kernel = 3, .pad = 1, .bias = false}), "bn"));
  x = dropout(x, "drop");
  fully_connected(x, "fc", {.outputs = outputs});
  return graph;
}

Options sharing(const Plan& plan) { return {.mode = Mode::inference, .dtype = plan.options().dtype, .share = &plan}; }

/// Runs a few passes and updates, so that parameters and statistics differ from their initial values.
void train(Plan& plan) {
  for (int i = 0; i < 3; ++i) {
    run_passes(plan);
    plan.update(0.05);
  }
}

}  // namespace

TEST_CASE("an inference plan uses the current parameters and statistics of the plan with which it shares them") {
  for (const auto& backend : tested_backends()) {
    Plan plan(graph_of(4), *backend, {.dtype = DType::f64, .optimiser = Sgd{.momentum = 0.9}});
    Plan evaluation(graph_of(5), *backend, sharing(plan));
    CHECK(evaluation.memory().parameters == 0);
    CHECK(evaluation.memory().state == 0);
    CHECK(evaluation.memory().total() == predict_memory(graph_of(5), *backend, sharing(plan)).total());
    CHECK(evaluation.parameter("conv.weight").data == plan.parameter("conv.weight").data);
    CHECK(evaluation.state("bn.running_var").data == plan.state("bn.running_var").data);

    for (int round = 0; round < 2; ++round) {
      train(plan);
      Plan copy(graph_of(5), *backend, {.mode = Mode::inference, .dtype = DType::f64});
      copy_parameters(plan, copy);
      for (const char* s : {"bn.running_mean", "bn.running_var"}) write(copy, copy.state(s), read(plan, plan.state(s)));
      copy.parameters_changed();
      evaluation.parameters_changed();
      write(evaluation, evaluation.input(), normal({5, 2, 6, 6}, 9));
      write(copy, copy.input(), normal({5, 2, 6, 6}, 9));
      evaluation.forward();
      copy.forward();
      INFO(backend->describe() << ", round " << round);
      CHECK(read(evaluation, evaluation.output()) == read(copy, copy.output()));
    }
  }
}

TEST_CASE("a new plan does not change shared parameters, and they outlive the plan that made them") {
  auto plan = std::make_unique<Plan>(graph_of(2), oracle());
  const Values weight(static_cast<std::size_t>(plan->parameter("fc.weight").shape.count()), 0.5);
  write(*plan, plan->parameter("fc.weight"), weight);
  Plan evaluation(graph_of(2), oracle(), sharing(*plan));
  Plan second(graph_of(3), oracle(), sharing(evaluation));
  plan.reset();
  CHECK(read(evaluation, evaluation.parameter("fc.weight")) == weight);
  second.forward();
  CHECK(read(second, second.parameter("fc.weight")) == weight);
}

TEST_CASE("a tensor that cannot be shared is an error that names it") {
  const auto other = make_backend("eigen");
  Plan plan(graph_of(2), oracle());
  CHECK_THROWS_WITH(predict_memory(graph_of(2, 7), oracle(), sharing(plan)), ContainsSubstring("fc.weight"));
  CHECK_THROWS_AS(predict_memory(graph_of(2), *other, sharing(plan)), UsageError);
  Options f64 = sharing(plan);
  f64.dtype = DType::f64;
  CHECK_THROWS_AS(predict_memory(graph_of(2), oracle(), f64), UsageError);
  Options training = sharing(plan);
  training.mode = Mode::training;
  CHECK_THROWS_AS(predict_memory(graph_of(2), oracle(), training), UsageError);
  Graph unknown("unknown");
  fully_connected(unknown.input({2, 2, 1, 1}), "another", {.outputs = 2});
  CHECK_THROWS_AS(predict_memory(unknown, oracle(), sharing(plan)), UsageError);
}
