// Normal and uniform numbers from words of Philox. They are plain loops over short blocks, so that the compiler
// vectorises them. The logarithm, sine and cosine are polynomials for the same reason, and give the same bits with
// every mathematics library.

#include "lamina/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "philox_words.h"

namespace lamina {
namespace {

constexpr int block_counters = 32;  // per iteration of the outer loop: 4 words each
constexpr int block_words = 4 * block_counters;
constexpr double word_step = 1.0 / 4294967296.0;  // 2^-32

/// A whole number below 2^52 as a double: the number becomes the fraction field of 2^52. SSE2 lacks the usual
/// conversion.
double whole(std::uint64_t number) { return std::bit_cast<double>(number | 0x4330000000000000U) - 4503599627370496.0; }

/// A polynomial by Horner's rule, the highest coefficient first. It is one expression, since an inner loop would
/// prevent vectorisation.
template <class... Coefficients>
double polynomial(double z, Coefficients... coefficients) {
  double value = 0;
  ((value = value * z + coefficients), ...);
  return value;
}

/// ln of a normal number m 2^k, with m between sqrt(1/2) and sqrt(2): k ln 2 + ln m. ln m = 2 artanh((m - 1) / (m +
/// 1)), a series that is truncated where its terms fall below 2^-52.
double logarithm(double number) {
  constexpr std::uint64_t root_half = 0x3FE6A09E667F3BCDU;  // bits of sqrt(1/2)
  constexpr std::uint64_t exponent_offset = 1024;           // keeps the shifted difference positive
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(number);
  const std::uint64_t exponent = (bits - root_half + (exponent_offset << 52)) >> 52;
  const double m = std::bit_cast<double>(bits - ((exponent - exponent_offset) << 52));
  const double s = (m - 1) / (m + 1);
  const double series =
      polynomial(s * s, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0);
  return (whole(exponent) - static_cast<double>(exponent_offset)) * std::numbers::ln2 + 2 * s * series;
}

constexpr double inverse_factorial(int n) { return n < 2 ? 1 : inverse_factorial(n - 1) / n; }

struct Point {
  double cosine, sine;
};

/// The point on the unit circle after word / 2^32 of a turn. The nearest quarter turn is exact; the rest, up to an
/// eighth of a turn, is a Taylor series.
Point on_circle(std::uint32_t word) {
  constexpr double round_to_whole = 6755399441055744.0;  // 1.5 2^52: adding it leaves the whole part in the low bits
  const double quarters = whole(word) * (word_step * 4);
  const double shifted = quarters + round_to_whole;
  const std::uint64_t quarter = std::bit_cast<std::uint64_t>(shifted);
  const double t = (quarters - (shifted - round_to_whole)) * (std::numbers::pi / 2);
  constexpr auto c = inverse_factorial;
  const double cosine = polynomial(t * t, c(16), -c(14), c(12), -c(10), c(8), -c(6), c(4), -c(2), 1.0);
  const double sine = t * polynomial(t * t, -c(15), c(13), -c(11), c(9), -c(7), c(5), -c(3), 1.0);
  const std::uint64_t sine_bits = std::bit_cast<std::uint64_t>(sine),
                      cosine_bits = std::bit_cast<std::uint64_t>(cosine);
  const std::uint64_t swaps = 0 - (quarter & 1);  // all ones in an odd quarter
  const std::uint64_t swapped = (sine_bits ^ cosine_bits) & swaps;
  return {std::bit_cast<double>((cosine_bits ^ swapped) ^ (((quarter + 1) & 2) << 62)),
          std::bit_cast<double>((sine_bits ^ swapped) ^ ((quarter & 2) << 62))};
}

}  // namespace

void fill_normal(std::span<double> out, std::uint64_t key, std::uint64_t first) {
  std::uint32_t words[block_words];
  double normal[block_words];
  // Blocks start with a whole counter, so the first block drops the numbers before `first`.
  std::size_t lead = first % 4;
  std::uint64_t counter = first / 4;
  for (std::size_t at = 0; at < out.size(); counter += block_counters) {
    philox_words<block_counters>(key, counter, 0, words);
    for (int i = 0; i < block_words; i += 2) {
      const double radius = std::sqrt(-2 * logarithm((whole(words[i]) + 0.5) * word_step));
      const Point point = on_circle(words[i + 1]);
      normal[i] = radius * point.cosine;
      normal[i + 1] = radius * point.sine;
    }
    const std::size_t count = std::min(out.size() - at, static_cast<std::size_t>(block_words) - lead);
    std::copy_n(normal + lead, count, out.begin() + static_cast<std::ptrdiff_t>(at));
    at += count;
    lead = 0;
  }
}

void fill_uniform(std::span<double> out, std::uint64_t key) {
  std::uint32_t words[block_words];
  for (std::size_t at = 0; at < out.size(); at += block_words / 2) {
    philox_words<block_counters>(key, at / 2, 0, words);
    const std::size_t count = std::min(out.size() - at, static_cast<std::size_t>(block_words / 2));
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bits = (std::uint64_t{words[2 * i]} << 21) ^ (words[2 * i + 1] >> 11);
      out[at + i] = static_cast<double>(bits) * (word_step / 2097152.0);
    }
  }
}

}  // namespace lamina
