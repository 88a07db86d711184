#pragma once
// 16-bit floating point numbers, f16 (IEEE 754 binary16) and bf16 (bfloat16), to and from double, bit by bit.

#include <cstdint>

#include "lamina/shape.h"

namespace lamina {

/// Exact; a NaN stays one. `dtype` is f16 or bf16.
double widen(DType dtype, std::uint16_t word);

/// The nearest, ties to even; infinities and NaNs are kept. `dtype` is f16 or bf16.
std::uint16_t narrow(DType dtype, double value);

}  // namespace lamina
