// Conversions between 16-bit floating point numbers and double.

#include "lib/core/numbers/float16.h"

#include <cmath>

namespace lamina {
namespace {

/// The number itself if f32 has it, else the neighbour in f32 whose last bit is 1. Rounding it again, to a shorter
/// type, gives the same as rounding `value` once: the last bit says that something was cut off, so no false tie occurs.
float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

}  // namespace

double widen(DType dtype, std::uint16_t word) {
  return static_cast<double>(dtype == DType::f16 ? widen<DType::f16>(word) : widen<DType::bf16>(word));
}

std::uint16_t narrow(DType dtype, double value) {
  const float odd = round_to_odd(value);
  return dtype == DType::f16 ? narrow<DType::f16>(odd) : narrow<DType::bf16>(odd);
}

}  // namespace lamina
