#pragma once
// Runs of Philox words, drawn for eight counters at once with AVX2.

#include <cstdint>

#include "lib/core/numbers/philox_words.h"

#if defined(__AVX2__) && !defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace lamina::eigen {

// With AVX-512 the compiler's code is kept: nothing else was measured there.
#if defined(__AVX2__) && !defined(__AVX512F__)
/// The words of eight counters from `first` on. A word is kept in the lower half of 64 bits, where products read and
/// write it; the upper half is ignored until the end. Compilers move each product's halves apart and together again,
/// which takes three times as long.
static inline void random_words_of_eight(std::uint64_t key, std::uint64_t first, std::uint64_t counter_high,
                                         std::uint32_t* words) {
  const auto all = [](std::uint64_t value) { return _mm256_set1_epi64x(static_cast<long long>(value)); };
  const __m256i factor_a = all(0xD2511F53U), factor_b = all(0xCD9E8D57U);
  __m256i x0[2], x1[2], x2[2], x3[2];
  for (int half = 0; half < 2; ++half) {
    x0[half] = _mm256_add_epi64(all(first), _mm256_set_epi64x(4 * half + 3, 4 * half + 2, 4 * half + 1, 4 * half));
    x1[half] = _mm256_srli_epi64(x0[half], 32);
    x2[half] = all(counter_high);
    x3[half] = all(counter_high >> 32);
  }
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int half = 0; half < 2; ++half) {
      const __m256i a = _mm256_mul_epu32(factor_a, x0[half]), b = _mm256_mul_epu32(factor_b, x2[half]);
      x0[half] = _mm256_xor_si256(_mm256_srli_epi64(b, 32), _mm256_xor_si256(x1[half], all(k0)));
      x1[half] = b;
      x2[half] = _mm256_xor_si256(_mm256_srli_epi64(a, 32), _mm256_xor_si256(x3[half], all(k1)));
      x3[half] = a;
    }
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  for (int half = 0; half < 2; ++half) {
    constexpr int upper = 0b10101010;
    const __m256i x01 = _mm256_blend_epi32(x0[half], _mm256_slli_epi64(x1[half], 32), upper);
    const __m256i x23 = _mm256_blend_epi32(x2[half], _mm256_slli_epi64(x3[half], 32), upper);
    const __m256i even = _mm256_unpacklo_epi64(x01, x23), odd = _mm256_unpackhi_epi64(x01, x23);  // counters
    auto* const to = reinterpret_cast<__m256i*>(words + 16 * half);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
  }
}
#endif

/// Like philox_words. Static: each file has its own copy, for its own instruction set.
template <int Counters>
static void random_words(std::uint64_t key, std::uint64_t first, std::uint64_t counter_high, std::uint32_t* words) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  static_assert(Counters % 8 == 0);
  for (int i = 0; i < Counters; i += 8) {
    random_words_of_eight(key, first + static_cast<std::uint64_t>(i), counter_high, words + 4 * i);
  }
#else
  philox_words<Counters>(key, first, counter_high, words);
#endif
}

}  // namespace lamina::eigen
