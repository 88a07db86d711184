// Plans whose algorithms are measured, on every backend that measures and runs everywhere.

#include <array>
#include <memory>

#include "io/files.h"
#include "lamina/choice_cache.h"
#include "lamina/error.h"
#include "support/catch.h"
#include "support/plans.h"

using namespace lamina;
using namespace lamina::test;

namespace {

/// Null where this build has no such backend.
std::unique_ptr<Backend> made(const std::string& name, const BackendOptions& options = {}) {
  try {
    return make_backend(name, options);
  } catch (const Unsupported&) {
    return nullptr;
  }
}

Graph net() {
  Graph graph("measured");
  const Value x = relu(conv(graph.input({2, 3, 8, 8}), "stem", {.channels = 4, .kernel = 3, .pad = 1}));
  const Value y = relu(conv(x, "deep", {.channels = 6, .kernel = 3, .pad = 1}));
  fully_connected(max_pool(y, "pool", {.window = 2, .stride = 2}), "outputs", {.outputs = 5});
  return graph;
}

Options measured(Mode mode) {
  Options options;
  options.mode = mode;
  options.choice.measure = true;
  return options;
}

constexpr std::array with_measurement = {"eigen", "cuda-host"};

}  // namespace

TEST_CASE("a measured plan computes what the plan by rule computes") {
  for (const std::string name : with_measurement) {
    INFO(name);
    const std::unique_ptr<Backend> backend = made(name);
    if (!backend) continue;
    for (const Mode mode : {Mode::training, Mode::inference}) {
      Options by_rule;
      by_rule.mode = mode;
      const Graph graph = net();
      Plan measured_plan(graph, *backend, measured(mode)), rule_plan(graph, *backend, by_rule);
      check_same(run(measured_plan), run(rule_plan), 1e-4);
    }
  }
}

TEST_CASE("a measured plan leaves its choices in the file, and another one takes them from it") {
  for (const std::string name : with_measurement) {
    INFO(name);
    const Folder folder;
    const std::string file = (folder / "choices.json").string();
    const std::unique_ptr<Backend> backend = made(name, {.choice_cache = file});
    if (!backend) continue;
    const Graph graph = net();
    const Plan first(graph, *backend, measured(Mode::training));
    const ChoiceCache cache(file);
    CHECK(cache.entries().size() == 3);
    for (const auto& [text, entry] : cache.entries()) {
      INFO(text);
      CHECK(entry.key.device == backend->device().describe());
      CHECK_FALSE(entry.algorithms[0].empty());
      CHECK_FALSE(entry.algorithms[1].empty());
    }

    // A choice that no race would end in shows where it came from.
    ChoiceCache edited(file);
    for (const auto& [text, entry] : cache.entries()) {
      Algorithms last = entry.algorithms;
      for (std::string& algorithm : last)
        if (!algorithm.empty()) algorithm = entry.key.unit.starts_with("fully_connected") ? "gemm" : "direct";
      edited.remember(entry.key, last);
    }
    edited.save();
    const std::unique_ptr<Backend> later = made(name, {.choice_cache = file});
    const std::string before = contents(file);
    const Plan second(graph, *later, measured(Mode::training));
    for (const Call& call : second.calls()) {
      const bool product = call.nodes.front() + 1 == static_cast<int>(second.graph().nodes().size());
      CHECK(call.algorithm == (product ? "gemm" : "direct"));
    }
    CHECK(contents(file) == before);
  }
}

TEST_CASE("eigen measures anew for another number of threads") {
  const Folder folder;
  const std::string file = (folder / "choices.json").string();
  for (const int threads : {1, 2, 1}) {
    const auto backend = make_backend("eigen", {.threads = threads, .choice_cache = file});
    Plan(net(), *backend, measured(Mode::inference));
  }
  CHECK(ChoiceCache(file).entries().size() == 6);
}
