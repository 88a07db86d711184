#pragma once
// Operations and bytes of whole passes, and the distinct layers of a network: each as a graph, as a unit of work, and
// with the algorithms that could do it.

#include <string>
#include <vector>

#include "bench/machine/backends.h"
#include "lamina/plan.h"
#include "session.h"

namespace lamina::bench {

struct GraphCost {
  Cost forward, backward;
};

/// The cost of a whole graph, each pass of each op alone: backward counts the data gradients that are wanted.
GraphCost graph_cost(const Graph&, DType, bool input_gradient);

/// The sums over a plan's calls.
GraphCost plan_cost(const Plan&);

std::vector<Shape> input_shapes(const Graph&, const Node&);

/// Nodes with one op and equal input shapes; named after the first.
struct DistinctLayer {
  std::vector<const Node*> nodes;  ///< of the graph that was given
  const Node& first() const { return *nodes.front(); }
  int count() const { return static_cast<int>(nodes.size()); }
};

/// "bn1 + relu"
std::string layers_text(const Graph&, const std::vector<int>& nodes);
std::string passes_text(const std::vector<Pass>&);

/// In order of the first nodes. The graph must outlive them.
std::vector<DistinctLayer> distinct_layers(const Graph&);

/// A node and its inputs as a separate graph; the inputs are x0, x1, ...
Graph alone(const Graph&, const Node&);

/// The unit of work that a plan of the one node will ask its backend for. Throws what planned_units does.
Spec spec_of(const Backend&, const Graph&, const Node&, const Config&, bool wants_dx);

/// An algorithm, and whether the backend says that it can do the layer.
struct NamedAlgorithm {
  std::string name;
  bool listed = true;
};

/// Those that the backend lists for the layer and pass and, after them, those that it lists for other layers of the
/// network with the same kind of op (for a plain 3x3 convolution, too). One, "none", where the backend was not built.
std::vector<NamedAlgorithm> algorithms_of(Backends&, const Config&, const Graph&, const Node&, Pass);

/// Options of a plan of one layer: the named algorithm for one pass, under the demands; the other passes by rule.
Options layer_options(const Config&, const Node&, Pass, const std::string& algorithm, const Choice& demands);

}  // namespace lamina::bench
