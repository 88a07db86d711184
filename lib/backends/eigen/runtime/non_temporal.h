#pragma once
// Non-temporal stores, which bypass the caches. A plain store first fetches the line that it changes, and evicts
// another line. For a tensor larger than the caches both are useless, since its first elements are evicted before
// anyone reads them.

#include <algorithm>
#include <cstdint>

#include "common.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lamina {

/// Least bytes of a tensor that is written by non-temporal stores: the size of the last-level cache, at least 32 MiB
/// and at most 128 MiB, because other programs use a larger cache, too. Tests change it.
std::int64_t& non_temporal_bytes();

namespace eigen {

constexpr std::int64_t line_bytes = 64;

/// Whether a tensor is large enough for non-temporal stores, and the processor has them.
template <class T>
bool wants_non_temporal([[maybe_unused]] const Shape& shape) {
#if defined(__x86_64__)
  return shape.count() * static_cast<std::int64_t>(sizeof(T)) >= non_temporal_bytes();
#else
  return false;
#endif
}

/// Copies elements, whole lines of memory by non-temporal stores. Other threads see them after a fence.
template <class T>
void copy_non_temporal(T* to, const T* from, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  constexpr std::int64_t line = line_bytes / static_cast<std::int64_t>(sizeof(T));
  for (; i < count && reinterpret_cast<std::uintptr_t>(to + i) % line_bytes != 0; ++i) to[i] = from[i];
  for (; i + line <= count; i += line) {
    const float* const in = reinterpret_cast<const float*>(from + i);
    float* const out = reinterpret_cast<float*>(to + i);
#if defined(__AVX512F__)
    _mm512_stream_ps(out, _mm512_loadu_ps(in));
#elif defined(__AVX__)
    for (int j = 0; j < 16; j += 8) _mm256_stream_ps(out + j, _mm256_loadu_ps(in + j));
#else
    for (int j = 0; j < 16; j += 4) _mm_stream_ps(out + j, _mm_loadu_ps(in + j));
#endif
  }
#endif
  for (; i < count; ++i) to[i] = from[i];
}

/// Orders this thread's non-temporal stores before its later stores, for instance before its signals to other threads.
inline void non_temporal_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace eigen
}  // namespace lamina
