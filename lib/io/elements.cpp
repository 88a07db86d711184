// Elements of files: IEEE 754 binary64, binary32, binary16 and bfloat16 to and from double, bit by bit.

#include "elements.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace lamina {
namespace {

/// The bits of a binary floating point type below its sign.
struct Format {
  int fraction_bits, exponent_bits;
  constexpr int bits() const { return 1 + exponent_bits + fraction_bits; }
  constexpr int lowest_exponent() const { return 2 - (1 << (exponent_bits - 1)); }  ///< of a normal number
  constexpr std::uint64_t infinity() const { return ((std::uint64_t{1} << exponent_bits) - 1) << fraction_bits; }
};

constexpr Format kBinary64{52, 11}, kBinary32{23, 8}, kBinary16{10, 5}, kBfloat16{7, 8};

constexpr Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return kBinary32;
    case DType::f16: return kBinary16;
    case DType::bf16: return kBfloat16;
    case DType::f64:
    case DType::u64: break;
  }
  return kBinary64;
}

std::uint64_t load(const std::byte* from, std::size_t bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes; ++i) word |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
  return word;
}

void store(std::byte* to, std::size_t bytes, std::uint64_t word) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(word >> (8 * i));
}

double widen(Format format, std::uint64_t word) {
  const std::uint64_t below_sign = word & ((std::uint64_t{1} << (format.bits() - 1)) - 1);
  const std::uint64_t fraction = below_sign & ((std::uint64_t{1} << format.fraction_bits) - 1);
  const int exponent = static_cast<int>(below_sign >> format.fraction_bits);
  double magnitude;
  if (below_sign >= format.infinity()) {
    magnitude = std::bit_cast<double>(kBinary64.infinity() | fraction << (52 - format.fraction_bits));
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<double>(fraction), format.lowest_exponent() - format.fraction_bits);
  } else {
    const auto significand = static_cast<double>(fraction | std::uint64_t{1} << format.fraction_bits);
    magnitude = std::ldexp(significand, exponent - 1 + format.lowest_exponent() - format.fraction_bits);
  }
  return word >> (format.bits() - 1) != 0 ? -magnitude : magnitude;
}

/// From double at once: going through float would round twice.
std::uint64_t narrow(Format format, double value) {
  const std::uint64_t sign = std::uint64_t{std::signbit(value)} << (format.bits() - 1);
  const double magnitude = std::abs(value);
  if (std::isnan(value)) {
    const std::uint64_t payload = std::bit_cast<std::uint64_t>(magnitude) & ((std::uint64_t{1} << 52) - 1);
    const std::uint64_t quiet = std::uint64_t{1} << (format.fraction_bits - 1);
    return sign | format.infinity() | quiet | payload >> (52 - format.fraction_bits);
  }
  if (std::isinf(value)) return sign | format.infinity();
  if (magnitude == 0) return sign;

  const int exponent = std::max(std::ilogb(magnitude), format.lowest_exponent());
  const double scaled = std::ldexp(magnitude, format.fraction_bits - exponent);
  auto units = static_cast<std::uint64_t>(scaled);
  const double rest = scaled - static_cast<double>(units);
  if (rest > 0.5 || (rest == 0.5 && units % 2 == 1)) ++units;
  // The leading one of `units` carries into the exponent, and so does rounding up to the next power of two.
  const std::uint64_t word =
      (static_cast<std::uint64_t>(exponent - format.lowest_exponent()) << format.fraction_bits) + units;
  return sign | std::min(word, format.infinity());
}

}  // namespace

void decode(DType dtype, std::span<const std::byte> bytes, std::span<double> values) {
  const Format format = format_of(dtype);
  const std::size_t width = size_of(dtype);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t word = load(&bytes[i * width], width);
    if (dtype == DType::f64) {
      values[i] = std::bit_cast<double>(word);
    } else if (dtype == DType::f32) {
      values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(word));
    } else {
      values[i] = widen(format, word);
    }
  }
}

void encode(DType dtype, std::span<const double> values, std::span<std::byte> bytes) {
  const Format format = format_of(dtype);
  const std::size_t width = size_of(dtype);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t word =
        dtype == DType::f64 ? std::bit_cast<std::uint64_t>(values[i]) : narrow(format, values[i]);
    store(&bytes[i * width], width, word);
  }
}

bool overflows(DType dtype, double value) {
  if (dtype == DType::f64 || !std::isfinite(value)) return false;
  const Format format = format_of(dtype);
  return narrow(format, std::abs(value)) == format.infinity();
}

}  // namespace lamina
