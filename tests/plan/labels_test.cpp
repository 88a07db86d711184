// Labels and ids have no gradient in plans, although they come from inputs.

#include "lib/core/units/spec_passes.h"
#include "tests/support/cases/plans.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

std::vector<std::string> wanted_names(const Graph& graph, const Options& options) {
  const std::vector<bool> wanted = wanted_gradients(graph, options);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) names.push_back(graph.nodes()[i].name);
  return names;
}

const Spec& spec_of(const std::vector<PlannedUnit>& units, const Graph& graph, const char* node) {
  for (const PlannedUnit& unit : units)
    if (unit.nodes.front() == graph.find(node)) return unit.spec;
  throw UsageError(std::string("no unit starts at ") + node);
}

}  // namespace

TEST_CASE("the output gradient of a loss is {1, 0} initially, and after new random values") {
  Graph graph("loss");
  const Value scores = fully_connected(graph.input({4, 3, 1, 1}, "x"), "fc", {.outputs = 5});
  softmax_cross_entropy(scores, graph.input({4, 1, 1, 1}, "labels"), "loss");
  const Plan plan(graph, one_thread());
  CHECK(read(plan, plan.output_gradient()) == Values{1, 0});
  draw_inputs(plan, 7);
  CHECK(read(plan, plan.output_gradient()) == Values{1, 0});
}

TEST_CASE("labels and ids get no gradient, even if the gradients of inputs are requested") {
  const Graph graph = classifier(9);
  for (const bool input_gradient : {false, true})
    CHECK(wanted_names(graph, {.input_gradient = input_gradient}) ==
          std::vector<std::string>{"words", "global_average_pool", "fc", "loss"});
  CHECK(wanted_names(graph, {.mode = Mode::inference}).empty());
}

TEST_CASE("units that read labels and ids compute no gradient for them") {
  const Graph graph = classifier(9);
  const std::vector<PlannedUnit> units = planned_units(graph, oracle(), {.input_gradient = true});
  CHECK(spec_of(units, graph, "words").wants_dx == std::vector<bool>{false});
  CHECK(spec_of(units, graph, "fc").wants_dx == std::vector<bool>{true});
  CHECK(spec_of(units, graph, "loss").wants_dx == std::vector<bool>{true, false});
}

TEST_CASE("an input that is read as ids and as numbers has only the gradient of the numbers") {
  Graph graph("both");
  const Value x = graph.input({2, 1, 6, 1}, "x");
  const Value words = embedding(x, "words", {.vocabulary = 9, .features = 1});
  relu(add(words, x, "sum"), "last");
  const Options options{.fuse = false, .input_gradient = true};
  CHECK(wanted_names(graph, options) == std::vector<std::string>{"x", "words", "sum", "last"});
  const std::vector<PlannedUnit> units = planned_units(graph, oracle(), options);
  CHECK(spec_of(units, graph, "words").wants_dx == std::vector<bool>{false});
  CHECK(spec_of(units, graph, "sum").wants_dx == std::vector<bool>{true, true});
  // no other unit writes the gradient of x, so nothing is added
  CHECK(spec_of(units, graph, "sum").adds_dx == std::vector<bool>{false, false});
}

TEST_CASE("parts of labels get no gradient, and neither do nodes that lead only to labels") {
  Graph graph("parts");
  const Value labels = graph.input({4, 2, 1, 1}, "labels");
  const Value scores = fully_connected(graph.input({4, 3, 1, 1}, "x"), "fc", {.outputs = 5});
  softmax_cross_entropy(scores, slice(labels, "part", {.first = 1, .count = 1}), "loss");
  CHECK(wanted_names(graph, {.input_gradient = true}) == std::vector<std::string>{"x", "fc", "loss"});
  const std::vector<PlannedUnit> units = planned_units(graph, oracle(), {.input_gradient = true});
  CHECK(spec_of(units, graph, "part").wants_dx == std::vector<bool>{false});
}

TEST_CASE("parameters on which only labels depend cannot be trained") {
  Graph graph("useless");
  const Value x = graph.input({4, 3, 1, 1}, "x");
  const Value labels = fully_connected(x, "teacher", {.outputs = 1});
  softmax_cross_entropy(fully_connected(x, "fc", {.outputs = 5}), labels, "loss");
  CHECK_THROWS_WITH(planned_units(graph, oracle()), ContainsSubstring("teacher"));
  CHECK_THROWS_AS(planned_units(graph, oracle()), UsageError);
  CHECK_NOTHROW(planned_units(graph, oracle(), {.mode = Mode::inference}));
}

TEST_CASE("a plan fills labels and ids with all valid numbers, the same on every backend") {
  Graph graph("long");
  const Value words = embedding(graph.input({40, 1, 30, 1}, "ids"), "words", {.vocabulary = 9, .features = 3});
  const Value scores = fully_connected(words, "fc", {.outputs = 5});
  softmax_cross_entropy(scores, graph.input({40, 1, 1, 1}, "labels"), "loss");
  Plan plan(graph, backend(), {.dtype = DType::f64, .seed = 3}), other(graph, oracle(), {.seed = 3});
  for (const auto& [name, count] : {std::pair{"ids", 9}, std::pair{"labels", 5}}) {
    const Values values = read(plan, plan.input(name));
    CHECK(read(other, other.input(name)) == values);
    std::set<double> seen(values.begin(), values.end());
    CHECK(seen.size() == static_cast<std::size_t>(count));
    CHECK(*seen.begin() == 0);
    CHECK(*seen.rbegin() == count - 1);
    for (const double value : seen) CHECK(value == std::floor(value));
  }
}

TEST_CASE("a plan with labels and ids has the same results with every option") {
  for (const Options& options :
       {Options{.dtype = DType::f64}, Options{.dtype = DType::f64, .input_gradient = true},
        Options{.dtype = DType::f64, .keep = Keep::cheap}, Options{.dtype = DType::f64, .keep_values = true}}) {
    Plan plan(classifier(9), backend(), options), plain(classifier(9), oracle(), {.dtype = DType::f64, .fuse = false});
    check_same(run(plan), run(plain), 1e-12);
    if (options.input_gradient) {
      CHECK_THROWS_WITH(plan.input_gradient("labels"), ContainsSubstring("labels"));
      CHECK_THROWS_AS(plan.input_gradient("ids"), UsageError);
    }
  }
}

TEST_CASE("a network with a loss has the gradients of finite differences") {
  for (const double clip : {0.0, 0.22}) {
    Graph graph("net");
    Value x = graph.input({3, 2, 5, 5}, "x");
    x = relu(conv(x, "conv", {.channels = 4, .kernel = 3}));
    x = tanh(fully_connected(x, "fc", {.outputs = 4}));
    softmax_cross_entropy(x, graph.input({3, 1, 1, 1}, "labels"), "loss", {.clip = clip});
    check_passed(check_gradients(graph, one_thread(), {.dtype = DType::f64}));
  }
  const GradientReport report = check_gradients(classifier(9), one_thread(), {.dtype = DType::f64});
  check_passed(report);
  for (const GradientError& error : report.tensors) CHECK(error.tensor != "labels");
}

TEST_CASE("wants() is true for the passes of a spec that a plan runs") {
  Spec spec;
  spec.op = Relu{};
  spec.w.resize(1);
  spec.wants_dx = {false, true};
  for (const Pass pass : {Pass::forward, Pass::prepare, Pass::recompute, Pass::backward_params, Pass::backward_data})
    CHECK(wants(spec, pass));
  spec.wants_dx = {false, false};
  CHECK_FALSE(wants(spec, Pass::backward_data));
  spec.w.clear();
  CHECK_FALSE(wants(spec, Pass::backward_params));
  spec.w.resize(1);
  spec.wants_dx = {true};
  spec.mode = Mode::inference;
  CHECK(wants(spec, Pass::forward));
  for (const Pass pass : {Pass::recompute, Pass::backward_params, Pass::backward_data}) CHECK_FALSE(wants(spec, pass));
}
