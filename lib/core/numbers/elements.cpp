// Conversions between double and the elements of files, which are little-endian.

#include "elements.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "lamina/error.h"
#include "lib/core/numbers/float16.h"

namespace lamina {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

void decode(DType dtype, std::span<const std::byte> bytes, std::span<double> values) {
  const std::byte* from = bytes.data();
  switch (dtype) {
    case DType::f64:
      for (double& value : values) value = std::bit_cast<double>(from_little_endian<std::uint64_t>(from)), from += 8;
      return;
    case DType::f32:
      for (double& value : values) value = std::bit_cast<float>(from_little_endian<std::uint32_t>(from)), from += 4;
      return;
    case DType::f16:
    case DType::bf16:
      for (double& value : values) value = widen(dtype, from_little_endian<std::uint16_t>(from)), from += 2;
      return;
    case DType::u64: break;
  }
  throw UsageError("only floating point types can be decoded");
}

void encode(DType dtype, std::span<const double> values, std::span<std::byte> bytes) {
  std::byte* to = bytes.data();
  switch (dtype) {
    case DType::f64:
      for (const double value : values) to_little_endian(to, std::bit_cast<std::uint64_t>(value)), to += 8;
      return;
    case DType::f32:
      for (const double value : values)
        to_little_endian(to, std::bit_cast<std::uint32_t>(static_cast<float>(value))), to += 4;
      return;
    case DType::f16:
    case DType::bf16:
      for (const double value : values) to_little_endian(to, narrow(dtype, value)), to += 2;
      return;
    case DType::u64: break;
  }
  throw UsageError("only floating point types can be encoded");
}

bool overflows(DType dtype, double value) {
  // The limit is half way between the largest number and the next power of two. A tie rounds to the power.
  double limit = infinity;
  if (dtype == DType::f32) limit = 0x1.ffffffp127;
  if (dtype == DType::f16) limit = 0x1.ffep15;
  if (dtype == DType::bf16) limit = 0x1.ffp127;
  return std::abs(value) >= limit && std::abs(value) < infinity;
}

}  // namespace lamina
