// The peak rate of repeated work on a device.

#include "peak_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "lamina/timing.h"

namespace lamina {

double peak_rate(Device& device, double flops_per_round, const std::function<void(int rounds)>& work) {
  constexpr int runs = 20, most_rounds = 1 << 20;
  constexpr double run_seconds = 2e-3;
  const std::unique_ptr<Timer> timer = device.timer();
  HeldLaunches held(device);
  const auto seconds_of = [&](int rounds) {
    held.run(*timer, [&] {
      timer->start();
      work(rounds);
      timer->stop();
    });
    return timer->seconds();
  };
  int rounds = 1;
  seconds_of(rounds);  // the first run loads the kernel
  // A short run is mostly overhead. So doubling finds the number of rounds, and then a proportion corrects it once.
  while (rounds < most_rounds && seconds_of(rounds) < run_seconds / 4) rounds *= 2;
  warm_up(device, [&] { work(rounds); });
  const double wanted = std::ceil(rounds * run_seconds / seconds_of(rounds));
  rounds = static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(most_rounds)));
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < runs; ++run) best = std::min(best, seconds_of(rounds));
  return flops_per_round * rounds / best;
}

}  // namespace lamina
