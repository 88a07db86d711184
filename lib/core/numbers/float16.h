#pragma once
// Conversions of 16-bit floating point numbers, f16 (IEEE 754 binary16) and bf16 (bfloat16). They have no branches, so
// that the compiler can vectorise loops over them.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "lamina/shape.h"

namespace lamina {

/// Widens exactly; a NaN stays a NaN. `Type` is f16 or bf16.
template <DType Type>
float widen(std::uint16_t word) {
  if constexpr (Type == DType::bf16) return std::bit_cast<float>(std::uint32_t{word} << 16);
  const std::uint32_t sign = (word & 0x8000U) << 16, magnitude = (word & 0x7fffU) << 13;
  // Read as a binary32, these bits are the number times 2^-112, for normal and for subnormal numbers.
  const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00U << 13 ? magnitude | 0x7f800000U : finite));
}

/// Rounds to nearest, ties to even; infinities and NaNs are kept. `Type` is f16 or bf16.
template <DType Type>
std::uint16_t narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U, magnitude = bits & 0x7fffffffU;
  constexpr std::uint32_t dropped = Type == DType::f16 ? 13 : 16;
  // A carry of the rounding moves into the exponent, and may give infinity.
  const std::uint32_t half_below = (1U << (dropped - 1)) - 1 + (magnitude >> dropped & 1);
  std::uint32_t word = (magnitude + half_below) >> dropped;
  if constexpr (Type == DType::bf16) {
    word = magnitude > 0x7f800000U ? magnitude >> 16 | 0x40 : word;
  } else {
    word = std::min(word - (112U << 10), 0x7c00U);  // f16's exponent is smaller by 112; too large: infinity
    // Subnormal f16 numbers: their last bit is 2^-24, and so is that of 0.5F, so the addition rounds correctly.
    const auto sum = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F);
    word = magnitude < 0x38800000U ? sum - 0x3f000000U : word;
    word = magnitude > 0x7f800000U ? 0x7e00U | (magnitude >> 13 & 0x1ffU) : word;
  }
  return static_cast<std::uint16_t>(sign | word);
}

/// Widens as above. `dtype` is f16 or bf16.
double widen(DType dtype, std::uint16_t word);

/// Rounds once, as above. `dtype` is f16 or bf16.
std::uint16_t narrow(DType dtype, double value);

}  // namespace lamina
