// The rate of multiply-adds in registers. Compiled once, for every processor; the measured loops are compiled per set.

#include "peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "common.h"

namespace lamina::eigen {
namespace {

// Seconds: long compared with the start and end of a round, and so short that other processes seldom interrupt it.
constexpr double long_enough = 0.5e-3;
constexpr int runs = 8;

/// Seconds of one round of all threads: the time of the slowest thread, from its own start.
template <class T>
double seconds_of(ThreadPool& pool, const RegisterSums<T>& sums, std::int64_t steps) {
  std::vector<double> seconds(static_cast<std::size_t>(pool.threads()));
  pool.run([&](int thread) {
    const auto start = std::chrono::steady_clock::now();
    [[maybe_unused]] const volatile double used = sums.total(steps, T(0.5), T(0.5));  // sums go towards 1: no denormals
    seconds[static_cast<std::size_t>(thread)] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
  return *std::max_element(seconds.begin(), seconds.end());
}

template <class T>
double measured(ThreadPool& pool, const RegisterSums<T>& sums) {
  std::int64_t steps = 1024;
  while (seconds_of(pool, sums, steps) < long_enough) steps *= 2;
  double best = seconds_of(pool, sums, steps);
  for (int run = 1; run < runs; ++run) best = std::min(best, seconds_of(pool, sums, steps));
  return 2.0 * static_cast<double>(steps * sums.count * pool.threads()) / best;
}

}  // namespace

double peak_flops_per_second(ThreadPool& pool, const InstructionSet& set, DType dtype) {
  if (dtype == DType::bf16 && set.pairs != nullptr) return measured(pool, set.pairs->sums);
  const DType computes = is_half(dtype) ? DType::f32 : dtype;  // halves are computed in f32
  return with_type(computes, [&]<class T>() { return measured(pool, set.of<T>().sums); });
}

}  // namespace lamina::eigen
