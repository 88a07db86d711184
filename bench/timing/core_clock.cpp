// The clock of the processor's core.

#include "core_clock.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace lamina::bench {
namespace {

constexpr int runs = 6, steps = 8192, additions = 32;  // some 0.1 ms each

/// Seconds of a chain of additions. The empty statements keep the compiler from merging them into one.
double seconds_of_chain() {
  const auto start = std::chrono::steady_clock::now();
  unsigned long sum = 1, addend = 3;
  asm volatile("" : "+r"(addend));
  for (int step = 0; step < steps; ++step) {
#pragma GCC unroll 32
    for (int i = 0; i < additions; ++i) {
      sum += addend;
      asm volatile("" : "+r"(sum));
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double core_clock() {
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < runs; ++run) best = std::min(best, seconds_of_chain());
  return static_cast<double>(steps) * additions / best;
}

}  // namespace lamina::bench
