#pragma once
// Converts many numbers of half precision to f32 and back.

#include <cstdint>

#include "lamina/shape.h"

namespace lamina::eigen {

class ThreadPool;

/// Exact. `from_type` is f16 or bf16.
void widen(float* to, const std::uint16_t* from, std::int64_t count, DType from_type);

/// Rounds to the nearest, ties to even; infinities and NaNs are kept. `to_type` is f16 or bf16.
void narrow(std::uint16_t* to, const float* from, std::int64_t count, DType to_type);

/// Converts all of a tensor, like MixedPrecisionLowering::convert.
void convert(const Tensor& to, const Tensor& from, ThreadPool&);

}  // namespace lamina::eigen
