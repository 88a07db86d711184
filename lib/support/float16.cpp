// 16-bit floating point numbers to and from double.

#include "lib/support/float16.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lamina {
namespace {

/// The bits of a binary floating point type without the sign.
struct Format {
  int fraction_bits, exponent_bits;
  constexpr int bits() const { return 1 + exponent_bits + fraction_bits; }
  constexpr int lowest_exponent() const { return 2 - (1 << (exponent_bits - 1)); }  ///< of a normal number
  constexpr std::uint64_t infinity() const { return ((std::uint64_t{1} << exponent_bits) - 1) << fraction_bits; }
};

constexpr Format binary64{52, 11}, binary16{10, 5}, bfloat16{7, 8};

constexpr Format format_of(DType dtype) { return dtype == DType::f16 ? binary16 : bfloat16; }

double widen(Format format, std::uint16_t word) {
  const std::uint64_t below_sign = word & ((std::uint64_t{1} << (format.bits() - 1)) - 1);
  const std::uint64_t fraction = below_sign & ((std::uint64_t{1} << format.fraction_bits) - 1);
  const int exponent = static_cast<int>(below_sign >> format.fraction_bits);
  double magnitude = 0;
  if (below_sign >= format.infinity()) {
    magnitude = std::bit_cast<double>(binary64.infinity() | fraction << (52 - format.fraction_bits));
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<double>(fraction), format.lowest_exponent() - format.fraction_bits);
  } else {
    const auto significand = static_cast<double>(fraction | std::uint64_t{1} << format.fraction_bits);
    magnitude = std::ldexp(significand, exponent - 1 + format.lowest_exponent() - format.fraction_bits);
  }
  return word >> (format.bits() - 1) != 0 ? -magnitude : magnitude;
}

/// Directly from double: going through float would round twice.
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

double widen(DType dtype, std::uint16_t word) { return widen(format_of(dtype), word); }

std::uint16_t narrow(DType dtype, double value) { return static_cast<std::uint16_t>(narrow(format_of(dtype), value)); }

}  // namespace lamina
