#pragma once
// The numbers of a file: little-endian f64, f32, f16 and bf16 as bytes, and doubles in memory.

#include <cstddef>
#include <span>

#include "lamina/shape.h"

namespace lamina {

/// Converts exactly: every number of these types is a double. `bytes` holds one element per value.
void decode(DType, std::span<const std::byte> bytes, std::span<double> values);

/// Rounds to nearest, ties to even; infinities and NaNs are kept. `bytes` has room for one element per value.
void encode(DType, std::span<const double> values, std::span<std::byte> bytes);

/// Whether the value is finite but would round to an infinity of that type.
bool overflows(DType, double value);

}  // namespace lamina
