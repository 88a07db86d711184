#pragma once
// The passes of a whole network, timed one by one. Each pass has new random inputs.

#include <functional>
#include <memory>
#include <vector>

#include "bench/timing/stopwatch.h"
#include "lamina/train.h"
#include "lamina/weights.h"

namespace lamina::bench {

class NetRun final : public TimedRun {
 public:
  /// Makes the plan, loads the weights if there are any, and runs a pass to warm up: it touches memory, starts threads
  /// and loads libraries. `record`: records the passes, and replays them from then on; throws Unsupported if the device
  /// cannot record. Of several ranks, each must pass the graph of its own part of the batch, and make the same calls.
  /// Backward sums the gradients over the ranks, as in a training. The ranks begin forward together, and also backward.
  /// `warm`: an untimed pass runs right before each timed pass, because the clock of a GPU falls while the host draws
  /// numbers.
  NetRun(const Graph&, Backend&, const Options&, bool record, const TensorFile& weights = {}, Communicator* = nullptr,
         bool warm = false);

  /// Draws new inputs and times a pass. Gives forward, backward and their sum in training, and one sample in inference.
  std::vector<Sample> pass() override;
  void untimed();  ///< runs a pass on the present inputs; without sums over ranks, so no other rank takes part
  const Plan& plan() const override { return plan_; }
  std::vector<double> bytes() const override;
  std::vector<Span> spans() const override { return spans_; }

 private:
  bool training() const { return plan_.options().mode == Mode::training; }
  void forward() { forward_ ? forward_->launch() : ranks_.forward(plan_); }
  void backward(bool sums) { backward_ ? backward_->launch() : ranks_.backward(plan_, sums); }
  Sample timed(const char* what, const std::function<void()>& work);
  void add_sums(Sample& backward);
  void record();

  Plan plan_;
  DataParallel ranks_;
  Stopwatch stopwatch_;
  std::unique_ptr<CapturedGraph> forward_, backward_;  ///< recorded passes; null: passes are not recorded
  std::uint64_t drawn_ = 0;                            ///< number of passes so far
  bool warm_ = false;
  std::vector<Span> spans_;
};

}  // namespace lamina::bench
