#pragma once
// The cost of whole passes. The distinct layers of a network: each as a graph, as a unit of work, and with the
// algorithms that could do it. Timed passes of one layer with one algorithm: time, whether all passes give the same
// bits, and the error against the exact result.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/numbers/reference.h"
#include "session.h"

namespace lamina::bench {

struct GraphCost {
  Cost forward, backward;
};

/// The cost of a whole graph: the sum over the passes of each op. `backward` counts the parameter gradients, and the
/// data gradients that a training needs; with `input_gradient` also the input's.
GraphCost graph_cost(const Graph&, DType, bool input_gradient);

/// The cost of a plan: the sum over its calls.
GraphCost plan_cost(const Plan&);

/// A layer: all nodes with equal ops and equal input shapes. The first node gives the name.
struct DistinctLayer {
  std::vector<const Node*> nodes;  ///< nodes of the given graph
  const Node& first() const { return *nodes.front(); }
  int count() const { return static_cast<int>(nodes.size()); }
};

/// The names of nodes as one text: "bn1 + relu".
std::string layers_text(const Graph&, const std::vector<int>& nodes);
std::string passes_text(const std::vector<Pass>&);

/// The distinct layers, in the order of their first nodes. The graph must outlive the layers.
std::vector<DistinctLayer> distinct_layers(const Graph&);

/// A node and its inputs as a separate graph; the inputs are x0, x1, ...
Graph alone(const Graph&, const Node&);

/// The unit of work that a plan of this node alone asks its backend for. Throws what planned_units throws.
Spec spec_of(const Backend&, const Graph&, const Node&, const Config&, bool wants_dx);

/// An algorithm for a layer. `listed`: whether the backend lists it for this layer.
struct NamedAlgorithm {
  std::string name;
  bool listed = true;
};

/// The algorithms that the backend lists for the layer and pass. Algorithms that it lists not for this layer
/// but for other layers with the same kind of op, or, if this layer is a convolution, for a plain 3x3 one, follow with
/// `listed` false. If the backend was not built or refuses the layer: only "none".
std::vector<NamedAlgorithm> algorithms_of(Backends&, const Config&, const Graph&, const Node&, Pass);

/// The options of a plan of one layer: the named algorithm for one pass, and the algorithms of the other passes by
/// rule. `demands`: math and limits of the algorithms.
Options layer_options(const Config&, const Node&, Pass, const std::string& algorithm, const Choice& demands);

/// The reference of one layer and pass. All algorithms share it, because plans draw the same numbers for each; the
/// first run makes it. Empty for ops without a reference.
using SharedReference = std::shared_ptr<std::optional<Reference>>;

/// The properties of an algorithm besides its time.
struct LayerFacts {
  Call call;                          ///< call of the plan, which declares its properties
  int runs_compared = 0;              ///< runs whose results were compared bit by bit
  bool same_bits = true;              ///< whether all compared runs have the same bits
  std::optional<ErrorFound> error{};  ///< error of the first run
};

/// "strict, deterministic, bit-identical in 4 runs, error 1.2e-07 of the terms": the text of a row.
std::string to_string(const LayerFacts&);

class LayerRun final : public TimedRun {
 public:
  /// Makes a plan of the graph, which has one node. Runs it once to warm up, or on a GPU until the clock has settled.
  /// The results of some runs are compared bit by bit, as inspect_timed_run() says. `cold`: each run begins with empty
  /// caches. Throws what Plan throws, and Unsupported if the layer is a view.
  LayerRun(Backend&, const Graph& graph, const Options&, Pass, const SharedReference&, bool cold = false);

  std::vector<Sample> pass() override;
  const Plan& plan() const override { return plan_; }
  std::map<std::string, double> counters() const override;
  std::string note() const override { return to_string(facts_); }
  std::string algorithm() const override { return facts_.call.algorithm; }
  const LayerFacts& facts() const { return facts_; }

 private:
  void enqueue();
  void look(double seconds);  ///< compares the bits of a timed run, if inspect_timed_run() chooses this run

  Pass pass_;
  Plan plan_;
  CallStopwatch stopwatch_;
  const Args* args_ = nullptr;  ///< arguments of the pass's call
  std::uint64_t first_bits_ = 0;
  LayerFacts facts_;
};

/// A run of the named algorithm on a layer of the network, under the demands. Throws what LayerRun throws, and
/// Unsupported for an algorithm that is not `listed` and cannot do the layer.
std::unique_ptr<LayerRun> open_layer(Backend&, const Config&, const Graph&, const Node&, Pass, const NamedAlgorithm&,
                                     const Choice& demands, const SharedReference&, bool cold = false);

}  // namespace lamina::bench
