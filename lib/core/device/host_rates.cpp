// The speed of the processor's memory. Each thread works on its own part of three arrays, which it was the first to
// touch.

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "gpu.h"
#include "lib/core/device/host/host_device.h"

namespace lamina {
namespace {

constexpr std::size_t array_bytes = std::size_t{256} << 20;
constexpr int tries = 9;

/// Calls work(thread) on `threads` threads, the caller's included.
void on_threads(int threads, const std::function<void(int)>& work) {
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
}

/// The time of the shortest of several runs, in which all threads do work(thread), after one run to warm up. Infinite
/// once `stop` returns true.
double shortest_seconds(int threads, const std::function<bool()>& stop, const std::function<void(int)>& work) {
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> stamps;
  stamps.reserve(tries + 2);
  bool stopped = false;  // written while all threads wait at the gate
  std::barrier gate(threads, [&]() noexcept {
    stamps.push_back(Clock::now());
    stopped = stopped || stop();
  });
  on_threads(threads, [&](int thread) {
    gate.arrive_and_wait();
    for (int i = 0; i <= tries && !stopped; ++i) {
      work(thread);
      gate.arrive_and_wait();
    }
  });
  double best = std::numeric_limits<double>::infinity();
  if (stopped) return best;
  for (std::size_t i = 2; i < stamps.size(); ++i)
    best = std::min(best, std::chrono::duration<double>(stamps[i] - stamps[i - 1]).count());
  return best;
}

}  // namespace

DeviceRates measure_host(int threads, const std::function<bool()>& stop) {
  HostDevice device(threads);
  const Buffer memory(device, 3 * array_bytes);
  auto* const first = static_cast<double*>(memory.data());
  constexpr std::size_t count = array_bytes / sizeof(double);
  const std::size_t share = count / static_cast<std::size_t>(threads);
  const auto part = [&](int array, int thread) {
    return first + static_cast<std::size_t>(array) * count + static_cast<std::size_t>(thread) * share;
  };

  // The arrays are written first: memory that was never written is one page of zeros, which is read from the cache.
  on_threads(threads, [&](int thread) {
    constexpr std::size_t block = std::size_t{1} << 20;
    for (const int array : {0, 1, 2})
      for (std::size_t i = 0; i < share && !stop(); i += block)
        std::fill_n(part(array, thread) + i, std::min(block, share - i), 1.0);
  });

  const double bytes = static_cast<double>(share) * sizeof(double) * threads;
  const double triad = shortest_seconds(threads, stop, [&](int thread) {
    double* const a = part(0, thread);
    const double* const b = part(1, thread);
    const double* const c = part(2, thread);
    for (std::size_t i = 0; i < share; ++i) a[i] = b[i] + 3.0 * c[i];
  });
  const double copy = shortest_seconds(
      threads, stop, [&](int thread) { std::memcpy(part(0, thread), part(1, thread), share * sizeof(double)); });
  DeviceRates rates;
  rates.copy_bytes_per_second = 2 * bytes / copy;
  rates.triad_bytes_per_second = 3 * bytes / triad;
  return rates;
}

}  // namespace lamina
