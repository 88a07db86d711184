// Fixed parameters are state: no pass computes their gradient, and no update changes them.

#include "lamina/weights.h"
#include "tests/support/cases/plans.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

/// Ops with parameters of several kinds, between two ops whose parameters stay trained.
Graph many_ops(const std::vector<std::string>& fixed) {
  Graph graph("fixed");
  Value x = conv(graph.input({3, 2, 6, 5}, "x"), "first", {.channels = 4, .kernel = 3, .pad = 1});
  x = relu(conv(x, "blur", {.channels = 4, .kernel = 3, .groups = 4, .bias = false}));
  x = relu(conv(x, "mixed", {.channels = 4, .kernel = 1}));
  x = scale_shift(batch_norm(x, "norm"), "scale", {.learned = true});
  x = fully_connected(x, "projection", {.outputs = 5, .bias = false});
  x = lstm(x, "lstm", {.hidden = 3});
  fully_connected(x, "last", {.outputs = 2});
  for (const std::string& name : fixed) graph.fix(name);
  return graph;
}

const std::vector<std::string> some = {"blur.weight",       "mixed.weight",      "norm.weight",
                                       "norm.bias",         "scale.shift",       "projection.weight",
                                       "lstm.weight_ih_l0", "lstm.weight_hh_l0", "lstm.bias_l0"};

Options options_of() { return {.dtype = DType::f64, .optimiser = Sgd{.momentum = 0.9, .weight_decay = 0.1}}; }

}  // namespace

TEST_CASE("fixed parameters are state: they do not change, and trained parameters have the same gradients") {
  const Graph all = many_ops({}), fixed = many_ops(some);
  CHECK(fixed.parameter_count() == all.parameter_count() - 36 - 16 - 4 - 4 - 4 - 5 * 4 * 4 * 3 - 12 * 5 - 12 * 3 - 12);
  Plan whole(all, backend(), options_of()), part(fixed, backend(), options_of());
  const auto names = part.parameter_names();
  CHECK(names == std::vector<std::string>{"first.weight", "first.bias", "mixed.bias", "scale.scale", "last.weight",
                                          "last.bias"});
  const TensorFile start = save_weights(whole);
  load_weights(part, start);
  for (Plan* plan : {&whole, &part}) run_passes(*plan);
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(read(part, part.parameter_gradient(name)) == read(whole, whole.parameter_gradient(name)));
  }
  for (int step = 0; step < 3; ++step) {
    part.update(0.1);
    run_passes(part);
  }
  const TensorFile end = save_weights(part);
  for (const std::string& name : some) CHECK(end.at(name).values == start.at(name).values);
  for (const std::string& name : names) CHECK(end.at(name).values != start.at(name).values);
  CHECK_THROWS_AS(part.parameter_gradient("blur.weight"), UsageError);
  Plan shares(fixed, backend(), {.mode = Mode::inference, .dtype = DType::f64, .share = &part});
  CHECK(shares.state("blur.weight").data == part.state("blur.weight").data);
}

TEST_CASE("no call computes the gradient of a fixed filter") {
  const auto params = [](const std::vector<std::string>& fixed) {
    std::size_t calls = 0;
    const Plan plan(many_ops(fixed), backend(), options_of());
    for (const Call& call : plan.calls())
      for (const int node : call.nodes)
        calls +=
            call.covers(Pass::backward_params) && plan.graph().nodes()[static_cast<std::size_t>(node)].name == "blur";
    return calls;
  };
  CHECK(params({}) > 0);
  CHECK(params({"blur.weight"}) == 0);
}

TEST_CASE("a network with only fixed parameters has only the gradient of its input") {
  Graph graph("frozen");
  conv(graph.input({1, 2, 4, 4}, "x"), "conv", {.channels = 2, .kernel = 3, .bias = false});
  graph.fix("conv.weight");
  CHECK(graph.parameter_count() == 0);
  Plan plan(graph, backend(), {.input_gradient = true});
  run_passes(plan);
  CHECK(plan.input_gradient("x"));
  CHECK_THROWS_AS(graph.fix("conv.bias"), UsageError);
}
