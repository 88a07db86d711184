#pragma once
// The words of dropout as the instruction set x86-64-v3 draws them. They run only on processors that have it.

#include <cstdint>

namespace lamina::test {

/// Draws four words for each of `counters` counters, a multiple of eight up to 40, in one run.
void random_words_avx2(int counters, std::uint64_t key, std::uint64_t first, std::uint64_t counter_high,
                       std::uint32_t* words);

}  // namespace lamina::test
