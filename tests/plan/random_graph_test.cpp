// A plan that fuses, shares, packs, drops and recomputes has the same numbers as a plan that does none of this.

#include "tests/support/cases/random_graph.h"
#include "tests/support/backend.h"
#include "tests/support/cases/plans.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

Values values_of(const Plan& plan, const Tensor& tensor) { return read(plan.backend().device(), tensor); }

/// The largest difference over the largest number of `expected`. A NaN anywhere counts as infinite.
double difference(const Values& actual, const Values& expected) {
  double largest = 1e-300, apart = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double d = std::abs(actual[i] - expected[i]);
    if (!(d < 1e300)) return 1e300;
    apart = std::max(apart, d);
    largest = std::max(largest, std::abs(expected[i]));
  }
  return apart / std::max(largest, 1e-3);
}

std::string text(const Graph& graph) {
  std::string all;
  for (const Node& node : graph.nodes()) {
    all += node.name + " = " + to_string(node.op) + " of";
    for (const int x : node.inputs) all += " " + graph.nodes()[static_cast<std::size_t>(x)].name;
    all += "; ";
  }
  return all;
}

void compare(Plan& plan, Plan& plain, const Options& options) {
  // Two passes run: the first must not disturb the second.
  for (int pass = 0; pass < 2; ++pass) {
    for (Plan* p : {&plan, &plain}) {
      p->forward();
      if (options.mode == Mode::training) p->backward();
    }
    CHECK(difference(values_of(plan, plan.output()), values_of(plain, plain.output())) < 1e-12);
  }
  if (options.mode == Mode::inference) return;
  for (const std::string& name : plan.parameter_names()) {
    INFO(name);
    CHECK(difference(values_of(plan, plan.parameter_gradient(name)), values_of(plain, plain.parameter_gradient(name))) <
          1e-12);
  }
  const std::vector<std::int64_t> numbers = whole_numbers(plan.graph());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Node& node = plan.graph().nodes()[i];
    if (!std::holds_alternative<Input>(node.op) || numbers[i] > 0 || !options.input_gradient) continue;
    INFO(node.name);
    CHECK(difference(values_of(plan, plan.input_gradient(node.name)),
                     values_of(plain, plain.input_gradient(node.name))) < 1e-12);
  }
}

}  // namespace

TEST_CASE("a plan of a random graph computes what a plan without fusion, sharing and packing computes", "[random]") {
  Dice dice(seed() ^ 0x9A4F);
  for (int round = 0; round < 30; ++round) {
    const Graph graph = random_graph(dice, dice(3, 14));
    Options options{.dtype = DType::f64};
    draw_options(dice, options);
    Options plain_options = options;
    plain_options.fuse = false;
    plain_options.keep = Keep::all;
    plain_options.keep_values = true;
    INFO("seed " << seed() << ", round " << round << (options.fuse ? ", fused" : "")
                 << (options.keep == Keep::cheap ? ", cheap" : "") << (options.input_gradient ? ", input gradient" : "")
                 << (options.accumulate_parameters ? ", accumulating" : "") << ": " << text(graph));
    if (decided_by_library() && refused(graph, options)) continue;
    Plan plan(graph, backend(), options), plain(graph, backend(), plain_options);
    compare(plan, plain, options);
    CHECK(predict_memory(graph, backend(), options).total() == plan.memory().total());
    // A library's workspaces depend on the strides of a view.
    if (!decided_by_library()) CHECK(plan.memory().arena <= plain.memory().arena);
  }
}
