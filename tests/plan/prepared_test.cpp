// Prepared parameters in inference: passes read them, and they are prepared again when parameters change.

#include "lamina/weights.h"
#include "tests/support/cases/plans.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

/// Graphs with a batch norm: alone, followed by a ReLU or an Add, and folded into a convolution, with and without an
/// Add and a ReLU after it.
std::vector<Graph> norms() {
  const Shape shape{2, 5, 6, 7};
  std::vector<Graph> graphs;
  for (const char* name : {"alone", "with a ReLU", "with an Add", "folded", "folded, with a tail"})
    graphs.emplace_back(name);
  batch_norm(graphs[0].input(shape), "bn");
  relu(batch_norm(graphs[1].input(shape), "bn"));
  const Value x = graphs[2].input(shape);
  relu(add(batch_norm(x, "bn"), max_pool(x, "pool", {.window = 3, .stride = 1, .pad = 1})));
  batch_norm(conv(graphs[3].input(shape), "conv", {.channels = 5, .kernel = 3, .pad = 1}), "bn");
  const Value in = graphs[4].input(shape);
  relu(add(batch_norm(conv(in, "conv", {.channels = 5, .kernel = 1, .bias = false}), "bn"), in));
  return graphs;
}

}  // namespace

TEST_CASE("a plan's batch norm in inference reads prepared parameters, which only parameters_changed() renews") {
  Device& device = backend().device();
  const std::string name = GENERATE("bn.weight", "bn.bias", "bn.running_mean", "bn.running_var");
  for (const Graph& graph : norms())
    for (const DType dtype : {DType::f32, DType::f64}) {
      INFO(graph.name() << ", " << to_string(dtype) << ", " << name);
      const Options options{.mode = Mode::inference, .dtype = dtype};
      Plan plan(graph, backend(), options);
      // A library may use the parameters of a batch norm without preparation.
      const bool prepares = plan.memory().prepared > 0, folded = graph.name().starts_with("folded");
      if (prepares || folded || !decided_by_library()) CHECK(plan.memory().prepared >= 3 * 5 * size_of(dtype));
      CHECK(predict_memory(graph, backend(), options).prepared == plan.memory().prepared);
      plan.forward();
      const Values before = read(plan, plan.output());

      const Tensor tensor = name.find("running") == std::string::npos ? plan.parameter(name) : plan.state(name);
      Values values = read(device, tensor);
      for (double& value : values) value += 0.5;
      upload(device, tensor, std::span<const double>(values));
      plan.forward();
      if (prepares) CHECK(read(plan, plan.output()) == before);

      plan.parameters_changed();
      plan.forward();
      const Values after = read(plan, plan.output());
      CHECK(after != before);
      Plan fresh(graph, backend(), options);
      load_weights(fresh, save_weights(plan));
      fresh.forward();
      CHECK(after == read(fresh, fresh.output()));
    }
}
