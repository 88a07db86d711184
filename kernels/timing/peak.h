#pragma once
// Multiply-adds whose operands stay in registers: the peak of a device's units.

#include <cmath>

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

constexpr int peak_threads = 256;  ///< threads of a block
constexpr int peak_chains = 8;     ///< independent chains of a thread
constexpr int peak_steps = 32;     ///< steps of each chain in a round, which is the unrolled body of the loop
/// Blocks for each multiprocessor. 24 make whole waves on multiprocessors that hold 2048, 1536 or 1024 threads.
constexpr int peak_blocks = 24;

/// The start value of chain `chain` of thread `thread` of the grid; exact.
template <class T>
LAMINA_HOST_DEVICE T peak_start(std::int64_t thread, int chain) {
  return static_cast<T>(static_cast<int>(thread % 1024)) / T(1024) + static_cast<T>(chain) / T(16);
}

/// The a or b of thread `thread`: slightly larger for each lane, so that each thread keeps it in its own register, as
/// the operands of a matrix product are.
template <class T>
LAMINA_HOST_DEVICE T peak_operand(std::int64_t thread, T value) {
  return value + static_cast<T>(static_cast<int>(thread % 32)) / T(65536);
}

/// Runs `blocks` blocks of peak_threads threads each. A chain is x = x * peak_operand(a) + peak_operand(b), rounded
/// once, `rounds` by peak_steps times; out[thread] is the sum of the thread's chains.
template <class T>
void peak(Stream, T* out, int blocks, int rounds, T a, T b);

/// Operations of one round of all blocks; a multiply-add counts as two.
constexpr double peak_flops_per_round(int blocks) { return 2.0 * blocks * peak_threads * peak_chains * peak_steps; }

/// The expected out[thread], exact in every bit.
template <class T>
T peak_result(std::int64_t thread, int rounds, T a, T b) {
  const T factor = peak_operand(thread, a), addend = peak_operand(thread, b);
  T sum = 0;
  for (int chain = 0; chain < peak_chains; ++chain) {
    T x = peak_start<T>(thread, chain);
    for (std::int64_t step = 0; step < std::int64_t{rounds} * peak_steps; ++step) x = std::fma(x, factor, addend);
    sum += x;
  }
  return sum;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
