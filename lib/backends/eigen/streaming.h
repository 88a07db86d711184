#pragma once
// Stores that go past the caches. A plain store first fetches the line it is to change, and drives another one out; for
// a tensor larger than any cache both are for nothing, since its first elements are gone before anyone reads them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lamina::eigen {

constexpr std::int64_t line_bytes = 64;

/// Whether a tensor is stored past the caches: as large as a last-level cache, and larger than the share of one that a
/// process has.
template <class T>
bool streams(const Shape& shape) {
  constexpr std::int64_t least_bytes = std::int64_t{32} << 20;
  return shape.count() * static_cast<std::int64_t>(sizeof(T)) >= least_bytes;
}

/// Copies one line, which starts where a line of memory does, past the caches.
inline void stream_line([[maybe_unused]] void* to, [[maybe_unused]] const void* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX__)
  for (int i = 0; i < 2; ++i)
    _mm256_stream_si256(static_cast<__m256i*>(to) + i, _mm256_loadu_si256(static_cast<const __m256i*>(from) + i));
#elif defined(__x86_64__)
  for (int i = 0; i < 4; ++i)
    _mm_stream_si128(static_cast<__m128i*>(to) + i, _mm_loadu_si128(static_cast<const __m128i*>(from) + i));
#else
  std::memcpy(to, from, line_bytes);
#endif
}

/// Copies elements, whole lines of them past the caches. They are there for other threads behind stream_fence().
template <class T>
void stream(T* to, const T* from, std::int64_t count) {
  constexpr std::int64_t line = line_bytes / static_cast<std::int64_t>(sizeof(T));
  const auto behind = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) / sizeof(T)) % line;
  const std::int64_t head = std::min(count, (line - behind) % line);
  std::copy_n(from, head, to);
  std::int64_t i = head;
  for (; i + line <= count; i += line) stream_line(to + i, from + i);
  std::copy(from + i, from + count, to + i);
}

/// Stands behind what this thread has streamed, before others are told that it is there.
inline void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace lamina::eigen
