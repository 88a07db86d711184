#pragma once
// Operations and bytes of whole passes, and the distinct layers of a network: each as a graph, as a unit of work, and
// with the algorithms that could do it. Repeated passes of one layer by one algorithm: their times, whether their bits
// stay the same, and how far they are from the exact result.

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

/// The cost of a whole graph: the sum over the passes of each op. Backward counts only the data gradients that are
/// wanted.
GraphCost graph_cost(const Graph&, DType, bool input_gradient);

/// The sums over a plan's calls.
GraphCost plan_cost(const Plan&);

/// Nodes with equal ops and equal input shapes. The first node gives the name.
struct DistinctLayer {
  std::vector<const Node*> nodes;  ///< nodes of the given graph
  const Node& first() const { return *nodes.front(); }
  int count() const { return static_cast<int>(nodes.size()); }
};

/// "bn1 + relu"
std::string layers_text(const Graph&, const std::vector<int>& nodes);
std::string passes_text(const std::vector<Pass>&);

/// The distinct layers, in order of their first nodes. The graph must outlive them.
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

/// The algorithms that the backend lists for the layer and pass, then its further algorithms for other layers of the
/// network with the same kind of op, and for a convolution those of a plain 3x3 one. If the backend was not built:
/// "none" alone.
std::vector<NamedAlgorithm> algorithms_of(Backends&, const Config&, const Graph&, const Node&, Pass);

/// Options of a plan of one layer: the named algorithm for one pass, under the demands; the other passes by rule.
Options layer_options(const Config&, const Node&, Pass, const std::string& algorithm, const Choice& demands);

/// The reference of one layer and pass, made when it is first asked for: the numbers that a plan draws are the same
/// for every algorithm. Nothing for ops without a reference.
using SharedReference = std::shared_ptr<std::optional<Reference>>;

/// The facts of an algorithm besides its time.
struct LayerFacts {
  Call call;                          ///< call of the plan, which declares its properties
  int runs_compared = 0;              ///< runs whose results were compared bit by bit
  bool same_bits = true;              ///< whether all of these have the same bits
  std::optional<ErrorFound> error{};  ///< error of the first run
};

/// "strict, deterministic, bit-identical in 4 runs, error 1.2e-07 of the terms": the text of a row.
std::string to_string(const LayerFacts&);

class LayerRun final : public TimedRun {
 public:
  /// Makes a plan of the graph, which has one node, and runs it once to warm up; on a GPU until its clock has settled.
  /// The results of runs are compared as inspect_timed_run() allows: only those of the first runs if a pass is short.
  /// With `cold` each run begins with empty caches. Throws what Plan throws, and Unsupported if nothing is to be run.
  LayerRun(Backend&, const Graph& graph, const Options&, Pass, const SharedReference&, bool cold = false);

  std::vector<Sample> pass() override;
  const Plan& plan() const override { return plan_; }
  std::map<std::string, double> counters() const override;
  std::string note() const override { return to_string(facts_); }
  std::string algorithm() const override { return facts_.call.algorithm; }
  const LayerFacts& facts() const { return facts_; }

 private:
  void enqueue();
  void look(double seconds);  ///< looks at the bits of a timed run, as inspect_timed_run() allows

  Pass pass_;
  Plan plan_;
  CallStopwatch stopwatch_;
  const Args* args_ = nullptr;  ///< arguments of the pass's call
  std::uint64_t first_bits_ = 0;
  LayerFacts facts_;
};

/// The named algorithm on a layer of the network, under the demands. Throws what LayerRun throws, and Unsupported for
/// an algorithm that the backend does not know for the layer.
std::unique_ptr<LayerRun> open_layer(Backend&, const Config&, const Graph&, const Node&, Pass, const NamedAlgorithm&,
                                     const Choice& demands, const SharedReference&, bool cold = false);

}  // namespace lamina::bench
