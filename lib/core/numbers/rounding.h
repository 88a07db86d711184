#pragma once
// Counts and bytes, most of them rounded up.

#include <cstddef>
#include <cstdint>

#include "lamina/shape.h"

namespace lamina {

/// The quotient, rounded up. The value is not negative.
constexpr std::int64_t divide_up(std::int64_t value, std::int64_t divisor) { return (value + divisor - 1) / divisor; }

/// The next multiple. The value is not negative.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return divide_up(value, multiple) * multiple;
}

/// The alignment, in bytes, of the blocks of a plan's memory.
constexpr std::size_t block_alignment = 256;

/// The next multiple of a power of two, for instance the start of the next block.
constexpr std::size_t aligned(std::size_t bytes, std::size_t alignment = block_alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

/// The bytes of a tensor without gaps.
inline std::size_t dense_bytes(const Shape& shape, DType dtype) {
  return static_cast<std::size_t>(shape.count()) * size_of(dtype);
}

}  // namespace lamina
