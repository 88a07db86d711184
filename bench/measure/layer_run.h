#pragma once
// One pass of one layer by one algorithm, run again and again: its times, whether its bits stay the same, and how far
// they are from the exact result.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "bench/numbers/reference.h"
#include "bench/timing/samples.h"
#include "bench/timing/stopwatch.h"
#include "lamina/plan.h"
#include "layers.h"

namespace lamina::bench {

/// The reference of one layer and pass, made when it is first asked for: the numbers that a plan draws are the same
/// for every algorithm. Nothing for ops that have none.
using SharedReference = std::shared_ptr<std::optional<Reference>>;

/// What is known of an algorithm besides its time.
struct LayerFacts {
  Call call;                          ///< as the plan declares it
  int runs_compared = 0;              ///< whose results were compared bit by bit
  bool same_bits = true;              ///< in all of them
  std::optional<ErrorFound> error{};  ///< of the first run
};

class LayerRun {
 public:
  /// Makes a plan of the graph, of one node, and runs it once, to warm up; on a GPU until its clock has settled. The
  /// results of runs are compared as the tuner does it: of a short pass those of the first runs only. With `cold` each
  /// run begins with empty caches. Throws Unsupported where there is nothing to run, and what Plan throws.
  LayerRun(Backend&, const Graph& graph, const Options&, Pass, const SharedReference&, bool cold = false);

  Sample run();  ///< one timed run
  const LayerFacts& facts() const { return facts_; }
  const Plan& plan() const { return plan_; }

 private:
  void enqueue();
  void look(double seconds);  ///< at the bits of a timed run, as inspect_timed_run() has it

  Pass pass_;
  Plan plan_;
  CallStopwatch stopwatch_;
  const Args* args_ = nullptr;  ///< of the pass's call
  std::uint64_t first_bits_ = 0;
  LayerFacts facts_;
};

/// The named algorithm on a layer of the network, under the demands. Throws what LayerRun throws, and Unsupported for
/// an algorithm that the backend does not know for the layer.
std::unique_ptr<LayerRun> open_layer(Backend&, const Config&, const Graph&, const Node&, Pass, const NamedAlgorithm&,
                                     const Choice& demands, const SharedReference&, bool cold = false);

/// "strict, deterministic, error 1.2e-07 of the terms": what a row says of itself.
std::string to_string(const LayerFacts&);

}  // namespace lamina::bench
