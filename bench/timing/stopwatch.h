#pragma once
// Timing work on a device: by its own timer, with the processor's time beside it.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lamina/plan.h"
#include "lamina/timing.h"
#include "samples.h"

namespace lamina::bench {

/// Seconds of processor time of all threads of this process so far.
double cpu_seconds();

/// Times one piece of work on a device that is idle before and after it, as a user sees it: the launches are included.
class Stopwatch {
 public:
  explicit Stopwatch(Device&);
  Sample time(const std::function<void()>& work);

 private:
  Device* device_;
  std::unique_ptr<Timer> timer_;
};

/// Times every call of a plan's pass separately, on timers made beforehand.
class CallStopwatch {
 public:
  /// With `hide`, launches are hidden where the device has a queue and the calls are few enough. With `cold`, the
  /// device's caches are emptied before each half of a pass.
  explicit CallStopwatch(Plan&, bool hide = false, bool cold = false);
  std::vector<double> forward();   ///< seconds of each of forward's calls, in order
  std::vector<double> backward();  ///< seconds of each of backward's calls
  /// One pass: its calls' seconds, and the processor's time of the whole half of the plan. Before a backward pass comes
  /// a forward, untimed.
  Sample pass(Pass);
  Launches launches() const { return launches_; }  ///< of the last pass

 private:
  std::vector<double> run(std::size_t first, std::size_t end, bool forward);
  void empty_caches();

  Plan* plan_;
  Buffer other_;                                ///< what caches hold once they are emptied; none: they are left alone
  double emptied_seconds_ = 0;                  ///< the processor's time for that
  std::vector<std::unique_ptr<Timer>> timers_;  ///< one per call of the plan
  std::optional<HeldLaunches> held_;
  Launches launches_ = Launches::none;
};

}  // namespace lamina::bench
