// Warming a device up until its clock has settled, and timing without the time of the host's launches.

#include "lamina/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace lamina {
namespace {

constexpr double least_seconds = 0.05, most_seconds = 1, batch_seconds = 0.01, agreement = 0.02;
constexpr double most_growth = 10;  // largest growth of a batch: the first run is often the slowest

constexpr double shortest_delay_seconds = 50e-6;  // the host's own noise
constexpr double margin = 2;                      // factor over the host's time in the last call

bool agree(double a, double b) { return std::abs(a - b) <= agreement * std::max(a, b); }

}  // namespace

void warm_up(Device& device, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  if (device.longest_hold() <= 0) return;
  const std::unique_ptr<Timer> timer = device.timer();
  (void)device.state();  // the first reading may be slow, and must not use up the time
  const Clock::time_point begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  int runs = 1;
  double worked = 0, run_before = 0, mhz_before = 0;
  while (worked < most_seconds && elapsed() < most_seconds) {
    timer->start();
    for (int i = 0; i < runs; ++i) work();
    timer->stop();
    const double batch = timer->seconds(), run = batch / runs;
    const double mhz = device.state().sm_mhz.value_or(0);
    worked += batch;
    if (worked >= least_seconds && agree(run, run_before) && agree(mhz, mhz_before)) return;
    run_before = run;
    mhz_before = mhz;
    const double wanted = run > 0 ? batch_seconds / run : most_growth * runs;
    runs = static_cast<int>(std::clamp(std::ceil(wanted), 1.0, most_growth * runs));
  }
}

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
