// The used memory of the arena while each unit runs.

#include "lamina/plan.h"

#include "lamina/lamina.h"
#include "tests/support/backend.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

/// Three 1x1 convolutions of 6 x 6 images, with 2, 3 and 4 channels.
Graph chain() {
  Graph graph("chain");
  Value x = graph.input({1, 1, 6, 6});
  x = conv(x, "a", {.channels = 2, .kernel = 1});
  x = conv(x, "b", {.channels = 3, .kernel = 1});
  conv(x, "c", {.channels = 4, .kernel = 1});
  return graph;
}

constexpr std::size_t plane = 36 * sizeof(float);

}  // namespace

TEST_CASE("in inference a value is in use from the unit that writes it to the last unit that reads it") {
  const std::vector<LiveMemory> steps = predict_live_memory(chain(), oracle(), {.mode = Mode::inference});
  REQUIRE(steps.size() == 3);
  CHECK(steps[0].nodes == std::vector<int>{1});
  CHECK(steps[0].values == 2 * plane);
  CHECK(steps[1].values == 5 * plane);
  CHECK(steps[2].values == 3 * plane);  // the output is outside the arena
  for (const LiveMemory& step : steps) {
    CHECK_FALSE(step.backward);
    CHECK(step.gradients == 0);
  }
}

TEST_CASE("in training a value is in use until backward reads it, and a gradient from its writer to its reader") {
  const std::vector<LiveMemory> steps = predict_live_memory(chain(), oracle(), {.mode = Mode::training});
  REQUIRE(steps.size() == 6);
  const std::vector<std::size_t> values = {2, 5, 5, 5, 2, 0}, gradients = {0, 0, 0, 3, 5, 2};
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    CHECK(steps[i].backward == (i >= 3));
    CHECK(steps[i].nodes == steps[5 - i].nodes);
    CHECK(steps[i].values == values[i] * plane);
    CHECK(steps[i].gradients == gradients[i] * plane);
  }
}

TEST_CASE("no step uses more than the arena, and the largest step uses over half of it") {
  for (const char* network : {"resnet18", "inception_v1", "cifar10_cnn"})
    for (const Keep keep : {Keep::all, Keep::cheap}) {
      CAPTURE(network, keep == Keep::cheap);
      const Graph graph = nets::build(network, {.batch = 2, .width_divisor = 8});
      const Options options{.keep = keep};
      const std::size_t arena = predict_memory(graph, oracle(), options).arena;
      std::size_t most = 0;
      for (const LiveMemory& step : predict_live_memory(graph, oracle(), options)) most = std::max(most, step.total());
      CHECK(most <= arena);
      CHECK(most > arena / 2);
    }
}
