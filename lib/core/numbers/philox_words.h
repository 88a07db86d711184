#pragma once
// Runs of Philox words, drawn side by side so that the compiler vectorises the rounds.

#include <cstdint>

namespace lamina {

/// Sets words 4 i to 4 i + 3 of `words` to philox(key, first + i, counter_high), for every i below `Counters`. Static:
/// each file has its own copy, for its own instruction set.
template <int Counters>
static void philox_words(std::uint64_t key, std::uint64_t first, std::uint64_t counter_high, std::uint32_t* words) {
  std::uint32_t x0[Counters], x1[Counters], x2[Counters], x3[Counters];
  for (int i = 0; i < Counters; ++i) {
    const std::uint64_t low = first + static_cast<std::uint64_t>(i);
    x0[i] = static_cast<std::uint32_t>(low);
    x1[i] = static_cast<std::uint32_t>(low >> 32);
    x2[i] = static_cast<std::uint32_t>(counter_high);
    x3[i] = static_cast<std::uint32_t>(counter_high >> 32);
  }
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < Counters; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53U} * x0[i];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * x2[i];
      x0[i] = static_cast<std::uint32_t>(b >> 32) ^ x1[i] ^ k0;
      x1[i] = static_cast<std::uint32_t>(b);
      x2[i] = static_cast<std::uint32_t>(a >> 32) ^ x3[i] ^ k1;
      x3[i] = static_cast<std::uint32_t>(a);
    }
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  for (int i = 0; i < Counters; ++i) {
    words[4 * i] = x0[i];
    words[4 * i + 1] = x1[i];
    words[4 * i + 2] = x2[i];
    words[4 * i + 3] = x3[i];
  }
}

}  // namespace lamina
