// A plan that fuses, shares and packs memory, drops and recomputes values has the same results as a plan without all
// this.

#include "tests/support/cases/random_graph.h"
#include "tests/support/cases/plans.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

std::string text(const Graph& graph) {
  std::string all;
  for (const Node& node : graph.nodes()) {
    all += node.name + " = " + to_string(node.op) + " of";
    for (const int x : node.inputs) all += " " + graph.nodes()[static_cast<std::size_t>(x)].name;
    all += "; ";
  }
  return all;
}

}  // namespace

TEST_CASE("a plan of a random graph has the results of a plan without fusion, sharing and packing", "[random]") {
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
    // Two passes run, because the first must not disturb the second.
    for (int pass = 0; pass < 2; ++pass) {
      const Outcome got = run(plan), want = run(plain);
      CHECK(got.names == want.names);
      check_same(got, want, 1e-12);
    }
    CHECK(predict_memory(graph, backend(), options).total() == plan.memory().total());
    // A library's workspaces may depend on the strides of a view.
    if (!decided_by_library()) CHECK(plan.memory().arena <= plain.memory().arena);
  }
}
