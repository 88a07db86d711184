#pragma once
// Draws the random words of dropout, with the instruction set of the including file.

#include <cstdint>

#include "lib/backends/eigen/runtime/random_words.h"

namespace lamina::test {

/// Draws four words for each of `counters` counters, which is a multiple of 8 up to 40. Each file has its own copy.
static void draw_words(int counters, std::uint64_t key, std::uint64_t first, std::uint64_t counter_high,
                       std::uint32_t* words) {
  switch (counters) {
    case 8: return eigen::random_words<8>(key, first, counter_high, words);
    case 16: return eigen::random_words<16>(key, first, counter_high, words);
    case 24: return eigen::random_words<24>(key, first, counter_high, words);
    case 32: return eigen::random_words<32>(key, first, counter_high, words);
    default: return eigen::random_words<40>(key, first, counter_high, words);
  }
}

/// draw_words() compiled for x86-64-v3. It runs only on processors with this instruction set.
extern void (*const draw_words_avx2)(int, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t*);

}  // namespace lamina::test
