#pragma once
// A whole network's passes, each with new numbers, timed one by one.

#include <functional>
#include <memory>
#include <vector>

#include "bench/timing/stopwatch.h"
#include "lamina/plan.h"
#include "lamina/weights.h"

namespace lamina::bench {

class NetRun {
 public:
  /// Makes the plan, with the weights if there are any, and runs it once to warm up: memory touched, threads
  /// started, libraries loaded. `record`: from then on passes are replayed; throws Unsupported where the device cannot.
  NetRun(const Graph&, Backend&, const Options&, bool record, const TensorFile& weights = {});

  /// Draws new numbers and times forward and backward in training, else the inference alone. `warm`: an
  /// untimed pass comes right before the timed one.
  std::vector<Sample> pass(bool warm = false);
  void untimed();  ///< a pass on the numbers that are there
  const Plan& plan() const { return plan_; }

 private:
  bool training() const { return plan_.options().mode == Mode::training; }
  void forward() { forward_ ? forward_->launch() : plan_.forward(); }
  void backward() { backward_ ? backward_->launch() : plan_.backward(); }
  Sample timed(const std::function<void()>& work);
  void record();

  Plan plan_;
  Stopwatch stopwatch_;
  std::unique_ptr<Captured> forward_, backward_;  ///< null: the plan's own calls
  int drawn_ = 0;
};

}  // namespace lamina::bench
