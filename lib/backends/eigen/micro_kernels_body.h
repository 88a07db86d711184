// The body of one instruction set's micro-kernels. Included once by each micro_kernels_<set>.cpp, which defines
// LAMINA_VECTOR_BYTES, LAMINA_TILE_ROWS, LAMINA_SET_NAME and LAMINA_SET_OBJECT. Everything here has internal linkage.
//
// A register tile is R rows by V vectors. For every k it loads V vectors of the packed panel and multiplies them by R
// numbers of A, read where they lie and spread over a vector. R * V sums + V vectors + 1 fill the registers.

#include <utility>

#include "micro_kernels.h"

namespace lamina::eigen {
namespace {

constexpr int bytes = LAMINA_VECTOR_BYTES;
constexpr int tile_rows = LAMINA_TILE_ROWS;
constexpr int tile_vectors = 3;

template <class T>
struct Simd {
  static constexpr int lanes = bytes / static_cast<int>(sizeof(T));
  typedef T Vector __attribute__((vector_size(LAMINA_VECTOR_BYTES)));
  typedef T Unaligned __attribute__((vector_size(LAMINA_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};

template <class T>
inline typename Simd<T>::Vector load(const T* from) {
  return *reinterpret_cast<const typename Simd<T>::Unaligned*>(from);
}

template <class T>
inline void store(T* to, typename Simd<T>::Vector value) {
  *reinterpret_cast<typename Simd<T>::Unaligned*>(to) = value;
}

#if LAMINA_VECTOR_BYTES == 64
inline void store_past_cache(float* to, Simd<float>::Vector value) { _mm512_stream_ps(to, (__m512)value); }
inline void store_past_cache(double* to, Simd<double>::Vector value) { _mm512_stream_pd(to, (__m512d)value); }
#elif LAMINA_VECTOR_BYTES == 32
inline void store_past_cache(float* to, Simd<float>::Vector value) { _mm256_stream_ps(to, (__m256)value); }
inline void store_past_cache(double* to, Simd<double>::Vector value) { _mm256_stream_pd(to, (__m256d)value); }
#else
template <class T>
inline void store_past_cache(T* to, typename Simd<T>::Vector value) {
  store(to, value);
}
#endif

template <class T, int R, int V>
void tile(const Tile<T>& t) {
  using Vector = typename Simd<T>::Vector;
  constexpr int lanes = Simd<T>::lanes;
  const T* a[R];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) a[i] = t.a + (i < t.rows ? i : t.rows - 1) * t.lda;
  Vector sum[R][V] = {};
  const T* b = t.b;
  const std::int64_t depth = t.depth, ldb = t.ldb;
  for (std::int64_t k = 0; k < depth; ++k, b += ldb) {
    Vector row[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) row[v] = load(b + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const Vector scale = a[i][k] - Vector{};
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[i][v] += scale * row[v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    if (i >= t.rows) break;
    T* c = t.c + i * t.ldc;
    const Vector bias = (t.bias != nullptr ? t.bias[i] : T{0}) - Vector{};
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      Vector value = sum[i][v] + bias;
      if (t.add) value += load(c + v * lanes);
      if (t.relu) value = value < 0 ? Vector{} : value;
      if (t.stream) {
        store_past_cache(c + v * lanes, value);
      } else {
        store(c + v * lanes, value);
      }
    }
  }
}

template <class T>
void copy(T* to, const T* from, const Segment* segments, std::int64_t count) {
  constexpr int lanes = Simd<T>::lanes;
  for (const Segment* s = segments; s != segments + count; ++s) {
    T* out = to + s->to;
    const T* in = from + s->from;
    for (std::int64_t i = 0; i < s->count; i += lanes) store(out + i, load(in + i));
  }
}

template <class T>
void copy_exact(T* to, const T* from, const Segment* segments, std::int64_t count) {
  constexpr int lanes = Simd<T>::lanes;
  for (const Segment* s = segments; s != segments + count; ++s) {
    T* out = to + s->to;
    const T* in = from + s->from;
    if (s->count < lanes) {
      for (std::int64_t i = 0; i < s->count; ++i) out[i] = in[i];
      continue;
    }
    for (std::int64_t i = 0; i + lanes <= s->count; i += lanes) store(out + i, load(in + i));
    store(out + s->count - lanes, load(in + s->count - lanes));
  }
}

/// Elements of two vectors in turn: a0 b0 a1 b1 ..., from the lower (First = 0) or the upper halves (First = lanes /
/// 2).
template <class T, int First, std::size_t... I>
inline typename Simd<T>::Vector interleave(typename Simd<T>::Vector a, typename Simd<T>::Vector b,
                                           std::index_sequence<I...>) {
  constexpr int lanes = Simd<T>::lanes;
  return __builtin_shufflevector(a, b, (First + static_cast<int>(I) / 2 + static_cast<int>(I) % 2 * lanes)...);
}

/// A square of lanes x lanes, transposed in registers by log2(lanes) rounds of interleaving rows i and i + lanes / 2.
template <class T, bool Masked>
inline void transpose_square(T* to, std::int64_t ldt, const T* from, std::int64_t ldf, const T* mask,
                             std::int64_t ldm) {
  using Vector = typename Simd<T>::Vector;
  constexpr int lanes = Simd<T>::lanes;
  constexpr auto indices = std::make_index_sequence<lanes>{};
  Vector row[lanes], next[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    row[i] = load(from + i * ldf);
    if constexpr (Masked) row[i] = load(mask + i * ldm) > 0 ? row[i] : Vector{};
  }
#pragma GCC unroll 4
  for (int round = 1; round < lanes; round *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes / 2; ++i) {
      next[2 * i] = interleave<T, 0>(row[i], row[i + lanes / 2], indices);
      next[2 * i + 1] = interleave<T, lanes / 2>(row[i], row[i + lanes / 2], indices);
    }
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) row[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) store(to + i * ldt, row[i]);
}

template <class T, bool Masked>
void transpose_all(T* to, std::int64_t ldt, const T* from, std::int64_t ldf, const T* mask, std::int64_t ldm,
                   std::int64_t columns, std::int64_t depth) {
  constexpr int lanes = Simd<T>::lanes;
  for (std::int64_t j = 0; j < columns; j += lanes) {
    std::int64_t k = 0;
    if (j + lanes <= columns) {
      for (; k + lanes <= depth; k += lanes) {
        transpose_square<T, Masked>(to + k * ldt + j, ldt, from + j * ldf + k, ldf,
                                    Masked ? mask + j * ldm + k : nullptr, ldm);
      }
    }
    const std::int64_t last = j + lanes < columns ? j + lanes : columns;
    for (; k < depth; ++k) {
      for (std::int64_t i = j; i < last; ++i) {
        const bool keep = !Masked || mask[i * ldm + k] > 0;
        to[k * ldt + i] = keep ? from[i * ldf + k] : T{0};
      }
    }
  }
}

template <class T>
void transpose(T* to, std::int64_t ldt, const T* from, std::int64_t ldf, const T* mask, std::int64_t ldm,
               std::int64_t columns, std::int64_t depth) {
  if (mask != nullptr) {
    transpose_all<T, true>(to, ldt, from, ldf, mask, ldm, columns, depth);
  } else {
    transpose_all<T, false>(to, ldt, from, ldf, nullptr, 0, columns, depth);
  }
}

template <class T>
constexpr MicroKernels<T> table() {
  constexpr int half = tile_rows / 2;
  return {tile_rows,
          Simd<T>::lanes,
          tile_vectors,
          {{tile<T, tile_rows, 1>, tile<T, tile_rows, 2>, tile<T, tile_rows, 3>},
           {tile<T, half, 1>, tile<T, half, 2>, tile<T, half, 3>}},
          copy<T>,
          copy_exact<T>,
          transpose<T>};
}

}  // namespace

const InstructionSet LAMINA_SET_OBJECT = {LAMINA_SET_NAME, table<float>(), table<double>()};

}  // namespace lamina::eigen
