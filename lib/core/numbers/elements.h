#pragma once
// The numbers of a file: little-endian f64, f32, f16 and bf16 as bytes, and doubles in memory.

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

#include "lamina/shape.h"

namespace lamina {

/// Reads a little-endian word on any host.
template <class Word>
Word from_little_endian(const std::byte* from) {
  Word word = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&word, from, sizeof word);
  } else {
    for (std::size_t i = sizeof word; i-- > 0;) word = static_cast<Word>(word << 8 | std::to_integer<Word>(from[i]));
  }
  return word;
}

/// Writes a word in little-endian order on any host.
template <class Word>
void to_little_endian(std::byte* to, Word word) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(to, &word, sizeof word);
  } else {
    for (std::size_t i = 0; i < sizeof word; ++i) to[i] = static_cast<std::byte>(word >> (8 * i));
  }
}

/// Converts exactly: every number of these types is a double. `bytes` holds one element per value.
void decode(DType, std::span<const std::byte> bytes, std::span<double> values);

/// Rounds to nearest, ties to even; infinities and NaNs are kept. `bytes` has room for one element per value.
void encode(DType, std::span<const double> values, std::span<std::byte> bytes);

/// Whether the value is finite but would round to an infinity of that type.
bool overflows(DType, double value);

}  // namespace lamina
