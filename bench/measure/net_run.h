#pragma once
// A whole network's passes, each with new numbers, timed one by one.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/timing/stopwatch.h"
#include "lamina/data_parallel.h"
#include "lamina/plan.h"
#include "lamina/weights.h"

namespace lamina::bench {

/// By std::chrono::steady_clock, in seconds.
struct Span {
  std::string what;
  double begin, end;
  bool is_sum = false;
};

class NetRun {
 public:
  /// Makes the plan, with the weights if there are any, and runs it once to warm up: memory touched, threads
  /// started, libraries loaded. `record`: from then on passes are replayed; throws Unsupported where the device cannot.
  /// Of several ranks each has the graph of its part, and makes the same calls; backward adds up their gradients, as a
  /// training does. They begin each half of a timed pass together.
  NetRun(const Graph&, Backend&, const Options&, bool record, const TensorFile& weights = {}, Communicator* = nullptr);

  /// Draws new numbers and times forward and backward in training, else the inference alone. `warm`: an
  /// untimed pass comes right before the timed one.
  std::vector<Sample> pass(bool warm = false);
  void untimed();  ///< a pass on the numbers that are there; it adds nothing up: ranks may do it not equally often
  const Plan& plan() const { return plan_; }
  const std::vector<Span>& spans() const { return spans_; }  ///< of this rank's last timed pass

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
  std::unique_ptr<CapturedGraph> forward_, backward_;  ///< null: the plan's own calls
  std::uint64_t drawn_ = 0;                            ///< numbers of passes so far
  std::vector<Span> spans_;
};

}  // namespace lamina::bench
