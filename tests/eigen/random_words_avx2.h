#pragma once
// Runs of the words of dropout, drawn by the instruction set of the file that includes this.

#include <cstdint>

#include "lib/backends/eigen/runtime/random_words.h"

namespace lamina::test {

/// Draws four words for each of `counters` counters, a multiple of eight up to 40, in one run. Each file has its own.
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

/// draw_words() of x86-64-v3. It runs only on processors that have this set.
extern void (*const draw_words_avx2)(int, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t*);

}  // namespace lamina::test
