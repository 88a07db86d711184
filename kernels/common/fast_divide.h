#pragma once
// Division of 32-bit numbers by a divisor that is known before the launch: a multiplication and a shift.
// Granlund, Montgomery: Division by Invariant Integers using Multiplication, 1994, section 4.

#include <cstdint>

#include "launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Divides numbers from 0 to 2^31 - 1.
struct FastDivide {
  unsigned divisor = 1, multiplier = 1, shift = 0;

  FastDivide() = default;
  explicit FastDivide(int by) : divisor(static_cast<unsigned>(by)) {
    while (shift < 31 && (1U << shift) < divisor) ++shift;
    const std::uint64_t excess = (std::uint64_t{1} << shift) - divisor;
    multiplier = static_cast<unsigned>((excess << 32) / divisor + 1);
  }

  __device__ unsigned quotient(unsigned number) const { return (__umulhi(number, multiplier) + number) >> shift; }
};

/// number = quotient * by + remainder.
struct Divided {
  unsigned quotient, remainder;
};

__device__ inline Divided divide(unsigned number, const FastDivide& by) {
  const unsigned quotient = by.quotient(number);
  return {quotient, number - quotient * by.divisor};
}

}  // namespace lamina::LAMINA_CUDA_SPACE
