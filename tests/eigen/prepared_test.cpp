// What the backend "eigen" prepares of parameters in inference: that passes read it, and that it follows the
// parameters.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lamina/plan.h"
#include "lamina/weights.h"
#include "support/catch.h"
#include "support/plans.h"
#include "support/values.h"

using namespace lamina;
using namespace lamina::test;

namespace {

/// A batch norm that stands alone, with a ReLU or with an Add behind it, or that is folded into a convolution.
std::vector<Graph> norms() {
  const Shape shape{2, 5, 6, 7};
  std::vector<Graph> graphs;
  for (const char* name : {"alone", "with a ReLU", "with an Add", "folded"}) graphs.emplace_back(name);
  batch_norm(graphs[0].input(shape), "bn");
  relu(batch_norm(graphs[1].input(shape), "bn"));
  const Value x = graphs[2].input(shape);
  relu(add(batch_norm(x, "bn"), max_pool(x, "pool", {.window = 3, .stride = 1, .pad = 1})));
  batch_norm(conv(graphs[3].input(shape), "conv", {.channels = 5, .kernel = 3, .pad = 1}), "bn");
  return graphs;
}

}  // namespace

TEST_CASE("a batch norm in inference computes with what was prepared, until parameters are said to have changed") {
  const auto eigen = make_backend("eigen", {.threads = 2});
  std::vector<std::pair<std::string, DType>> cases;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const char* name : {"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"})
      cases.emplace_back(name, dtype);
  for (const Graph& graph : norms()) {
    for (const auto& [name, dtype] : cases) {
      INFO(graph.name() << ", " << to_string(dtype) << ", " << name);
      const Options options{.mode = Mode::inference, .dtype = dtype};
      Plan plan(graph, *eigen, options);
      CHECK(plan.memory().prepared >= 3 * 5 * size_of(dtype));
      plan.forward();
      const Values before = read(eigen->device(), plan.output());

      const Tensor tensor = name.find("running") == std::string::npos ? plan.parameter(name) : plan.state(name);
      Values values = read(eigen->device(), tensor);
      for (double& value : values) value += 0.5;
      upload(eigen->device(), tensor, std::span<const double>(values));
      plan.forward();
      CHECK(read(eigen->device(), plan.output()) == before);

      plan.parameters_changed();
      plan.forward();
      const Values after = read(eigen->device(), plan.output());
      CHECK(after != before);
      Plan fresh(graph, *eigen, options);
      load_weights(fresh, save_weights(plan));
      fresh.forward();
      CHECK(after == read(eigen->device(), fresh.output()));
    }
  }
}
