// Converts numbers of half precision to f32 and back. The compiler vectorises these loops. It does not use the
// processors' instructions for f16 by itself.

#include "conversions.h"

#include "lib/backends/eigen/runtime/elements.h"
#include "lib/core/numbers/float16.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace lamina::eigen {

void widen(float* to, const std::uint16_t* from, std::int64_t count, DType from_type) {
  if (from_type == DType::bf16) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = lamina::widen<DType::bf16>(from[i]);
    return;
  }
  std::int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
#endif
  for (; i < count; ++i) to[i] = lamina::widen<DType::f16>(from[i]);
}

void narrow(std::uint16_t* to, const float* from, std::int64_t count, DType to_type) {
  if (to_type == DType::bf16) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = lamina::narrow<DType::bf16>(from[i]);
    return;
  }
  std::int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < count; ++i) to[i] = lamina::narrow<DType::f16>(from[i]);
}

void convert(const Tensor& to, const Tensor& from, ThreadPool& pool) {
  constexpr std::int64_t run = 1024;  // elements between two prefetches
  split_images(pool, to.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    if (is_half(to.dtype))
      return narrow(image<std::uint16_t>(to, n) + first, image<const float>(from, n) + first, last - first, to.dtype);
    for (std::int64_t at = first; at < last; at += run) {
      const std::int64_t count = std::min(run, last - at);
      float* const wide = image<float>(to, n) + at;
      const auto* const halves = image<const std::uint16_t>(from, n) + at;
      prefetch_ahead(halves, count);
      prefetch_to_write(wide, count);
      widen(wide, halves, count, from.dtype);
    }
  });
}

}  // namespace lamina::eigen
