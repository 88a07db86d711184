// Elements of files: IEEE 754 binary64, binary32, binary16 and bfloat16 to and from double, bit by bit.

#include "elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "lamina/error.h"

namespace lamina {
namespace {

/// The bits of a binary floating point type below its sign.
struct Format {
  int fraction_bits, exponent_bits;
  constexpr int bits() const { return 1 + exponent_bits + fraction_bits; }
  constexpr int lowest_exponent() const { return 2 - (1 << (exponent_bits - 1)); }  ///< of a normal number
  constexpr std::uint64_t infinity() const { return ((std::uint64_t{1} << exponent_bits) - 1) << fraction_bits; }
};

constexpr Format binary64{52, 11}, binary16{10, 5}, bfloat16{7, 8};
constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr Format format_of(DType dtype) { return dtype == DType::f16 ? binary16 : bfloat16; }

/// Little-endian, on any host.
template <class Word>
Word load(const std::byte* from) {
  Word word = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&word, from, sizeof word);
  } else {
    for (std::size_t i = 0; i < sizeof word; ++i) word |= std::to_integer<Word>(from[i]) << (8 * i);
  }
  return word;
}

template <class Word>
void store(std::byte* to, Word word) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(to, &word, sizeof word);
  } else {
    for (std::size_t i = 0; i < sizeof word; ++i) to[i] = static_cast<std::byte>(word >> (8 * i));
  }
}

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
  const std::byte* from = bytes.data();
  switch (dtype) {
    case DType::f64:
      for (double& value : values) value = std::bit_cast<double>(load<std::uint64_t>(from)), from += 8;
      return;
    case DType::f32:
      for (double& value : values) value = std::bit_cast<float>(load<std::uint32_t>(from)), from += 4;
      return;
    case DType::f16:
    case DType::bf16:
      for (double& value : values) value = widen(format_of(dtype), load<std::uint16_t>(from)), from += 2;
      return;
    case DType::u64: break;
  }
  throw UsageError("only floating point numbers are decoded");
}

void encode(DType dtype, std::span<const double> values, std::span<std::byte> bytes) {
  std::byte* to = bytes.data();
  switch (dtype) {
    case DType::f64:
      for (const double value : values) store(to, std::bit_cast<std::uint64_t>(value)), to += 8;
      return;
    case DType::f32:
      for (const double value : values) store(to, std::bit_cast<std::uint32_t>(static_cast<float>(value))), to += 4;
      return;
    case DType::f16:
    case DType::bf16:
      for (const double value : values) store(to, static_cast<std::uint16_t>(narrow(format_of(dtype), value))), to += 2;
      return;
    case DType::u64: break;
  }
  throw UsageError("only floating point numbers are encoded");
}

bool overflows(DType dtype, double value) {
  // Half way between the largest number and the power of two behind it: a tie, which goes to the power.
  double limit = infinity;
  if (dtype == DType::f32) limit = 0x1.ffffffp127;
  if (dtype == DType::f16) limit = 0x1.ffep15;
  if (dtype == DType::bf16) limit = 0x1.ffp127;
  return std::abs(value) >= limit && std::abs(value) < infinity;
}

}  // namespace lamina
