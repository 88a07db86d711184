// The algorithms of a plan: named for all nodes or for one node, or measured by a tuner.

#include "tests/support/backend.h"
#include "tests/support/cases/unit.h"
#include "tests/support/catch.h"
#include "tests/support/wrapped_backend.h"

using namespace lamina::test;

namespace {

constexpr Pass passes[] = {Pass::forward, Pass::backward_params, Pass::backward_data};

/// For each pass of this file's convolutions, the first or last algorithm that the backend accepts.
Choice of_convolutions(bool last) {
  const Case c{"", Conv{.channels = 2, .kernel = 3}, {{1, 2, 5, 5}}};
  const Spec spec = *make_spec(backend(), c, {.dtype = DType::f32});
  Choice choice;
  for (const Pass pass : passes) {
    const std::vector<std::string> names = algorithms(spec, pass);
    REQUIRE_FALSE(names.empty());
    choice.algorithm[static_cast<std::size_t>(pass)] = last ? names.back() : names.front();
  }
  return choice;
}

std::string algorithm_of(const Choice& choice, const Call& call) {
  return choice.algorithm[static_cast<std::size_t>(call.passes.front())];
}

/// A tuner that picks one algorithm for every pass that has it.
struct FixedTuner final : Tuner {
  explicit FixedTuner(std::string algorithm) : answer(std::move(algorithm)) {}

  MeasuredChoice measure(Backend& backend, const Spec& spec, const Choice& choice, void* buffer,
                         std::size_t buffer_bytes) override {
    ++measurements;
    has_buffer = buffer != nullptr && buffer_bytes > 0;
    Choice picked = choice;
    for (const Pass pass : passes)
      if (std::ranges::count(backend.algorithms(spec, pass), answer) > 0)
        picked.algorithm[static_cast<std::size_t>(pass)] = answer;
    return {picked};
  }

  std::string answer;
  int measurements = 0;
  bool has_buffer = false;
};

/// Convolutions, and ops without the algorithms of convolutions.
Graph several_ops() {
  Graph graph("several");
  Value x = conv(graph.input({2, 3, 6, 6}), "stem", {.channels = 4, .kernel = 3, .pad = 1, .bias = false});
  x = relu(batch_norm(x, "bn"), "relu");
  x = conv(x, "deep", {.channels = 4, .kernel = 3, .pad = 1, .bias = false});
  fully_connected(global_average_pool(x, "pool"), "fc", {.outputs = 5});
  return graph;
}

}  // namespace

TEST_CASE("a measured choice runs, and equal units are measured once") {
  const auto tuner = std::make_shared<FixedTuner>(of_convolutions(true).algorithm[0]);
  Graph graph("twins");
  Value x = graph.input({1, 4, 5, 5});
  for (const char* name : {"a", "b", "c"}) x = conv(x, name, {.channels = 4, .kernel = 3, .pad = 1});
  CHECK_THROWS_MATCHES(Plan(graph, backend(), {.choice = {.measure = true}}), UsageError, Says("make_tuner()"));
  Plan plan(graph, backend(), {.choice = {.measure = true}, .tuner = tuner, .input_gradient = true});
  // All three convolutions want dx and do not add to gradients, so their specs are equal. The first wants dx because of
  // `input_gradient`.
  CHECK(tuner->measurements == 1);
  CHECK(tuner->has_buffer);
  for (const Call& call : plan.calls())
    if (call.passes.front() == Pass::forward) CHECK(call.algorithm == tuner->answer);
}

TEST_CASE("a choice by node name has precedence over the choice for all") {
  Options options;
  const Choice first = of_convolutions(false), last = of_convolutions(true);
  options.choice = last;
  options.choice_of["b"] = first;
  Graph graph("two");
  conv(conv(graph.input({1, 2, 5, 5}), "a", {.channels = 2, .kernel = 3}), "b", {.channels = 2, .kernel = 3});
  Plan plan(graph, backend(), options);
  for (const Call& call : plan.calls()) CHECK(call.algorithm == algorithm_of(call.nodes[0] == 2 ? first : last, call));
}

TEST_CASE("a negative or NaN max_error is an error") {
  Graph graph("bound");
  conv(graph.input({1, 1, 4, 4}), "c", {.channels = 1, .kernel = 3});
  for (const auto& [none, text] :
       {std::pair(-1.0, "-1;"), std::pair(-1e-9, "-1e-09;"), std::pair(std::nan(""), "nan;")}) {
    Options options{.choice = {.max_error = none}};
    CHECK_THROWS_MATCHES(Plan(graph, oracle(), options), UsageError,
                         Says(std::string("Options::choice.max_error is ") + text));
    options.choice.max_error = no_bound;
    options.choice_of["c"].max_error = none;
    CHECK_THROWS_MATCHES(Plan(graph, oracle(), options), UsageError,
                         Says(std::string("Options::choice_of[\"c\"].max_error is ") + text));
  }
}

TEST_CASE("an algorithm named for all nodes is used by the units that have it, and is an error if no unit has it") {
  const Choice last = of_convolutions(true);
  const std::string known = last.algorithm[2];
  Options options{.choice = last};
  const Graph graph = several_ops();
  Plan plan(graph, backend(), options);
  for (const Call& call : plan.calls()) {
    const Op& op = plan.graph().nodes()[static_cast<std::size_t>(call.nodes[0])].op;
    if (std::holds_alternative<Conv>(op)) CHECK(call.algorithm == algorithm_of(last, call));
  }
  options.choice.algorithm[2] = known + "x";
  CHECK_THROWS_MATCHES(Plan(graph, backend(), options), UsageError, Says("backward_data", known));
}

TEST_CASE("an algorithm that a node does not have is an error, even for a pass that the plan does not run") {
  Graph graph("two");
  conv(conv(graph.input({1, 2, 5, 5}), "a", {.channels = 2, .kernel = 3}), "b", {.channels = 2, .kernel = 3});
  const auto named = [](Mode mode, bool input_gradient, const char* node, const std::array<std::string, 3>& names) {
    Options options{.mode = mode, .input_gradient = input_gradient};
    options.choice_of[node].algorithm = names;
    return options;
  };
  const Choice known = of_convolutions(true);
  const auto refused = [&](Mode mode, bool input_gradient, const char* node, Pass pass) {
    const auto index = static_cast<std::size_t>(pass);
    std::array<std::string, 3> names;
    names[index] = known.algorithm[index] + "x";
    const Options options = named(mode, input_gradient, node, names);
    CHECK_THROWS_MATCHES(Plan(graph, backend(), options), UsageError,
                         Says(std::string(to_string(pass)), known.algorithm[index]));
  };
  for (const char* const node : {"a", "b"}) {
    for (const Mode mode : {Mode::inference, Mode::training}) {
      INFO(node << (mode == Mode::training ? ", training" : ", inference"));
      for (const Pass pass : passes) refused(mode, false, node, pass);
      CHECK_NOTHROW(Plan(graph, backend(), named(mode, false, node, known.algorithm)));
    }
    refused(Mode::training, true, node, Pass::backward_data);
  }
}
