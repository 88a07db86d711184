// Compiled for x86-64-v3. It includes no inline functions of the library or of Catch: the linker could take such a
// function for the whole program, which would then run it on every processor.

#include "tests/eigen/random_words_avx2.h"

#include "lib/backends/eigen/runtime/random_words.h"

#if !defined(__AVX2__) || defined(__AVX512F__)
#error "this file is compiled with -march=x86-64-v3, so that random_words takes its AVX2 form"
#endif

namespace lamina::test {

void random_words_avx2(int counters, std::uint64_t key, std::uint64_t first, std::uint64_t counter_high,
                       std::uint32_t* words) {
  switch (counters) {
    case 8: eigen::random_words<8>(key, first, counter_high, words); break;
    case 16: eigen::random_words<16>(key, first, counter_high, words); break;
    case 24: eigen::random_words<24>(key, first, counter_high, words); break;
    case 32: eigen::random_words<32>(key, first, counter_high, words); break;
    case 40: eigen::random_words<40>(key, first, counter_high, words); break;
  }
}

}  // namespace lamina::test
