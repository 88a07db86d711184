#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011).
// A number is a function of key and counter, so every backend and layout draws the same numbers, in any order.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "lamina/api.h"

namespace lamina {

/// Four words from a 128-bit counter (low half first) and a 64-bit key. Matches the published test vectors.
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_low,
                                              std::uint64_t counter_high) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  std::array<std::uint32_t, 4> x = {
      static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
      static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * x[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * x[2];
    x = {static_cast<std::uint32_t>(b >> 32) ^ x[1] ^ k0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ x[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return x;
}

/// FNV-1a, 64 bits: the hash of a node's name.
constexpr std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 0xCBF29CE484222325U;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return h;
}

/// Standard normal numbers (Box-Muller on words of Philox): elements first, first + 1, ... of the sequence of `key`.
LAMINA_API void fill_normal(std::span<double> out, std::uint64_t key, std::uint64_t first = 0);

/// Uniform numbers in [0, 1). Element i is a function of key and i alone.
LAMINA_API void fill_uniform(std::span<double> out, std::uint64_t key);

}  // namespace lamina
