// A pass allocates nothing: whatever it needs was planned.

#include <vector>

#include "counter.h"
#include "lamina/nets.h"
#include "lamina/plan.h"
#include "support/backend.h"
#include "support/catch.h"

using namespace lamina;
using lamina::test::allocations;

TEST_CASE("the counter of allocations counts") {
  const std::size_t before = allocations;
  std::vector<char> bytes(1000);
  bytes[0] = 1;
  CHECK(allocations > before);
}

TEST_CASE("neither forward nor backward allocates, on one thread or two, in f32 or f64") {
  for (const char* net : {"alexnet", "inception_v1", "resnet18", "resnet200"}) {
    const Graph graph = nets::build(net, {.batch = 2, .image = 64, .width_divisor = 8});
    for (const int threads : {1, 2}) {
      const auto backend = make_backend("eigen", {.threads = threads});
      for (const DType dtype : {DType::f32, DType::f64}) {
        Options options;
        options.dtype = dtype;
        options.keep = threads == 1 ? Keep::all : Keep::cheap;
        options.input_gradient = true;
        Plan plan(graph, *backend, options);
        plan.forward();  // the first pass starts the threads
        plan.backward();
        const std::size_t before = allocations;
        plan.forward();
        plan.backward();
        const std::size_t in_passes = allocations - before;
        INFO(net << ", " << threads << " threads, " << to_string(dtype));
        CHECK(in_passes == 0);
      }
    }
  }
}
