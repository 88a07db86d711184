// Compiled for x86-64-v3. This file must not include inline functions of the library or of Catch. The linker could use
// this file's copies in the whole program, which would then fail on other processors.

#include "tests/eigen/random_words_avx2.h"

#if !defined(__AVX2__) || defined(__AVX512F__)
#error "this file is compiled with -march=x86-64-v3, so that random_words takes its AVX2 form"
#endif

namespace lamina::test {

void (*const draw_words_avx2)(int, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t*) = draw_words;

}  // namespace lamina::test
