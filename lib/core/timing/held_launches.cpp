// Timing without the time of the host's launches.

#include "lamina/timing.h"

#include <algorithm>
#include <chrono>

namespace lamina {
namespace {

constexpr double shortest_delay_seconds = 50e-6;  // the host's own noise
constexpr double margin = 2;                      // factor over the host's time in the last call

}  // namespace

bool HeldLaunches::run(Timer& first, const std::function<void()>& enqueue) {
  using Clock = std::chrono::steady_clock;
  const double longest = device_->longest_hold();
  if (longest <= 0) {
    enqueue();
    return false;
  }
  for (;;) {
    delay_seconds_ = std::min(delay_seconds_, longest);
    device_->hold(delay_seconds_);
    const Clock::time_point begin = Clock::now();
    enqueue();
    const double needed = std::chrono::duration<double>(Clock::now() - begin).count();
    if (!first.started()) {
      delay_seconds_ = std::max(shortest_delay_seconds, margin * needed);
      return true;
    }
    if (delay_seconds_ >= longest) return false;
    delay_seconds_ = std::max(2 * delay_seconds_, margin * needed);
  }
}

}  // namespace lamina
