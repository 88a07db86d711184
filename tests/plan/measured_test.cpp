// Plans whose algorithms are measured.

#include "lamina/tuning.h"
#include "tests/io/files.h"
#include "tests/support/cases/plans.h"
#include "tests/support/cases/unit.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

Graph measured_net() {
  Graph graph("measured");
  const Value stem = conv(graph.input({2, 3, 8, 8}), "stem", {.channels = 4, .kernel = 3, .pad = 1});
  const Value x = relu(batch_norm(stem, "norm"));  // inference folds this batch norm, so measuring reads its state
  const Value y = relu(conv(x, "deep", {.channels = 6, .kernel = 3, .pad = 1}));
  fully_connected(max_pool(y, "pool", {.window = 2, .stride = 2}), "outputs", {.outputs = 5});
  return graph;
}

Options measured(Mode mode, const std::string& file = {}) {
  return {.mode = mode, .choice = {.measure = true}, .tuner = make_tuner(file)};
}

/// For each pass of a 3x3 convolution of the graph, the last listed algorithm that the backend accepts.
Algorithms last_of_convolutions(Backend& backend) {
  const Case c{"", Conv{.channels = 6, .kernel = 3, .pad = 1}, {{2, 4, 8, 8}}, {}};
  const Spec spec = *make_spec(backend, c, {.dtype = DType::f32});
  Algorithms last;
  for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data})
    for (const std::string& name : backend.algorithms(spec, pass)) {
      Choice choice;
      choice.algorithm[static_cast<std::size_t>(pass)] = name;
      if (!throws<Unsupported>([&] { backend.lower(spec, choice); })) last[static_cast<std::size_t>(pass)] = name;
    }
  return last;
}

/// The tolerance of a plan's results. A library's transforms have larger errors without a known bound.
double tolerance(const Plan& plan) {
  const bool transforms =
      std::ranges::any_of(plan.calls(), [](const Call& call) { return is_unbounded(call.algorithm); });
  return transforms ? 1e-2 : 1e-4;
}

}  // namespace

TEST_CASE("a measured plan has the results of a plan with default algorithms") {
  for (const auto& backend : tested_backends()) {
    INFO(backend->describe());
    for (const Mode mode : {Mode::training, Mode::inference}) {
      const Options by_rule{.mode = mode};
      const Graph graph = measured_net();
      Plan measured_plan(graph, *backend, measured(mode)), rule_plan(graph, *backend, by_rule);
      check_same(run(measured_plan), run(rule_plan), tolerance(measured_plan));
    }
  }
}

TEST_CASE("a measured plan stores its choices in a file, and another plan reads them from the file") {
  for (const auto& backend : tested_backends()) {
    INFO(backend->describe());
    const Folder folder;
    const std::string file = folder.file("choices.json");
    const Graph graph = measured_net();
    const Plan first(graph, *backend, measured(Mode::training, file));
    const ChoiceCache cache(file);
    // The two convolutions and, if it has several algorithms, the fully connected op.
    const Spec product =
        *make_spec(*backend, {"", FullyConnected{.outputs = 5}, {{2, 6, 4, 4}}}, {.dtype = DType::f32});
    CHECK(cache.entries().size() == (backend->algorithms(product, Pass::forward).size() > 1 ? 3 : 2));
    for (const auto& [text, entry] : cache.entries()) {
      INFO(text);
      CHECK(entry.key.device == backend->device().describe());
      CHECK_FALSE(entry.algorithms[0].empty());
      CHECK_FALSE(entry.algorithms[1].empty());
    }

    // The file gets choices that no race would make, so it is visible that they come from the file.
    const Algorithms last = last_of_convolutions(*backend);
    ChoiceCache edited(file);
    for (const auto& [text, entry] : cache.entries()) {
      if (entry.key.unit.starts_with("fully_connected")) continue;
      Algorithms other = entry.algorithms;
      for (std::size_t pass = 0; pass < other.size(); ++pass)
        if (!other[pass].empty()) other[pass] = last[pass];
      edited.remember(entry.key, other);
    }
    edited.save();
    const std::string before = contents(file);
    const Plan second(graph, *backend, measured(Mode::training, file));
    for (const Call& call : second.calls()) {
      const Op& op = second.graph().nodes()[static_cast<std::size_t>(call.nodes.front())].op;
      const auto pass = static_cast<std::size_t>(call.passes.front());
      if (std::holds_alternative<Conv>(op) && pass < last.size()) CHECK(call.algorithm == last[pass]);
    }
    CHECK(contents(file) == before);
  }
}

TEST_CASE("eigen measures again for another number of threads") {
  const Folder folder;
  const std::string file = folder.file("choices.json");
  for (const int threads : {1, 2, 1}) {
    const auto backend = make_backend("eigen", {.threads = threads});
    Plan(measured_net(), *backend, measured(Mode::inference, file));
  }
  CHECK(ChoiceCache(file).entries().size() == 6);
}
