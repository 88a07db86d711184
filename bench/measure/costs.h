#pragma once
// Operations and bytes of whole passes.

#include <vector>

#include "lamina/plan.h"

namespace lamina::bench {

struct GraphCost {
  Cost forward, backward;
};

/// The cost of a whole graph, each pass of each op alone: backward counts the data gradients that are wanted.
GraphCost graph_cost(const Graph&, DType, bool input_gradient);

/// The sums over a plan's calls.
GraphCost plan_cost(const Plan&);

std::vector<Shape> input_shapes(const Graph&, const Node&);

}  // namespace lamina::bench
