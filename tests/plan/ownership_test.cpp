// Ownership: a plan shares its backend.

#include "tests/support/cases/plans.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

Graph owned_net() {
  Graph graph("net");
  const Value x = relu(conv(graph.input({2, 3, 8, 8}), "conv", {.channels = 4, .kernel = 3, .pad = 1}));
  fully_connected(global_average_pool(x, "pool"), "fc", {.outputs = 5});
  return graph;
}

std::shared_ptr<Backend> make_backend_here() { return make_or_skip(tested_backend("eigen"), {.threads = 2}); }

}  // namespace

TEST_CASE("a plan outlives the last pointer to its backend, and the last plan destroys the backend") {
  const Graph graph = owned_net();
  std::shared_ptr<Backend> backend = make_backend_here();
  const std::weak_ptr<Backend> seen = backend;
  Plan first(graph, *backend), second(graph, *backend);
  first.forward();
  const Values y = read(first, first.output());
  backend.reset();
  first = std::move(second);
  REQUIRE_FALSE(seen.expired());
  run_passes(first);
  CHECK(read(first.backend().device(), first.output()) == y);
  { const Plan last = std::move(first); }
  CHECK(seen.expired());
}

TEST_CASE("a plan keeps a backend to which no other pointer exists") {
  Plan plan(owned_net(), *make_backend_here());
  run_passes(plan);
  CHECK(plan.output().shape == Shape{2, 5, 1, 1});
}
