#pragma once
// A whole network's passes, each with new numbers, timed one by one.

#include <functional>
#include <memory>
#include <vector>

#include "bench/timing/stopwatch.h"
#include "lamina/train.h"
#include "lamina/weights.h"

namespace lamina::bench {

class NetRun final : public TimedRun {
 public:
  /// Makes the plan, with the weights if there are any, and runs it once to warm up: memory touched, threads
  /// started, libraries loaded. `record`: from then on passes are replayed; throws Unsupported where the device cannot.
  /// Several ranks each have the graph of their part, and make the same calls; backward adds up their gradients, as a
  /// training does. They begin each half of a timed pass together. `warm`: an untimed pass comes right before each
  /// timed pass, for a GPU, whose clock falls while the host draws numbers.
  NetRun(const Graph&, Backend&, const Options&, bool record, const TensorFile& weights = {}, Communicator* = nullptr,
         bool warm = false);

  /// Draws new numbers and times a pass: in training forward, backward and their sum; otherwise inference.
  std::vector<Sample> pass() override;
  void untimed();  ///< runs a pass on the present numbers; ranks sum nothing, and may run it unequally often
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
  std::unique_ptr<CapturedGraph> forward_, backward_;  ///< recorded passes; null: the plan's own calls
  std::uint64_t drawn_ = 0;                            ///< number of passes so far
  bool warm_ = false;
  std::vector<Span> spans_;
};

}  // namespace lamina::bench
