// The body of one instruction set's micro-kernels. Included once by each micro_kernels_<set>.cpp, which defines
// LAMINA_VECTOR_BYTES, LAMINA_TILE_ROWS, LAMINA_SET_NAME and LAMINA_SET_OBJECT. Everything here has internal linkage.
//
// A register tile is R rows by V vectors. For every k it loads V vectors of the packed panel and multiplies them by R
// numbers of A, read where they lie and spread over a vector. R * V sums + V vectors + 1 fill the registers.

#include <cstdint>
#include <type_traits>
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
  using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef T Vector __attribute__((vector_size(LAMINA_VECTOR_BYTES)));
  typedef T Unaligned __attribute__((vector_size(LAMINA_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
  typedef Integer Mask __attribute__((vector_size(LAMINA_VECTOR_BYTES)));  // all bits of a lane, or none
};

/// 0, 1, 2, ...
template <class T, std::size_t... I>
inline typename Simd<T>::Mask count_up(std::index_sequence<I...>) {
  return typename Simd<T>::Mask{static_cast<typename Simd<T>::Integer>(I)...};
}
template <class T>
inline typename Simd<T>::Mask count_up() {
  return count_up<T>(std::make_index_sequence<Simd<T>::lanes>{});
}

/// The first `count` lanes; all of them where there are no more.
template <class T>
inline typename Simd<T>::Mask first_lanes(std::int64_t count) {
  constexpr std::int64_t lanes = Simd<T>::lanes;
  return count_up<T>() < static_cast<typename Simd<T>::Integer>(count < lanes ? count : lanes);
}

template <class T>
inline typename Simd<T>::Vector load(const T* from) {
  return *reinterpret_cast<const typename Simd<T>::Unaligned*>(from);
}

template <class T>
inline void store(T* to, typename Simd<T>::Vector value) {
  *reinterpret_cast<typename Simd<T>::Unaligned*>(to) = value;
}

// What vector extensions lack: loads and stores of some lanes, which touch no other.
#if LAMINA_VECTOR_BYTES == 64
inline Simd<float>::Vector load_lanes(const float* from, Simd<float>::Mask mask) {
  return (Simd<float>::Vector)_mm512_maskz_loadu_ps(_mm512_movepi32_mask((__m512i)mask), from);
}
inline Simd<double>::Vector load_lanes(const double* from, Simd<double>::Mask mask) {
  return (Simd<double>::Vector)_mm512_maskz_loadu_pd(_mm512_movepi64_mask((__m512i)mask), from);
}
inline void store_lanes(float* to, Simd<float>::Mask mask, Simd<float>::Vector value) {
  _mm512_mask_storeu_ps(to, _mm512_movepi32_mask((__m512i)mask), (__m512)value);
}
inline void store_lanes(double* to, Simd<double>::Mask mask, Simd<double>::Vector value) {
  _mm512_mask_storeu_pd(to, _mm512_movepi64_mask((__m512i)mask), (__m512d)value);
}
#elif LAMINA_VECTOR_BYTES == 32
inline Simd<float>::Vector load_lanes(const float* from, Simd<float>::Mask mask) {
  return (Simd<float>::Vector)_mm256_maskload_ps(from, (__m256i)mask);
}
inline Simd<double>::Vector load_lanes(const double* from, Simd<double>::Mask mask) {
  return (Simd<double>::Vector)_mm256_maskload_pd(from, (__m256i)mask);
}
inline void store_lanes(float* to, Simd<float>::Mask mask, Simd<float>::Vector value) {
  _mm256_maskstore_ps(to, (__m256i)mask, (__m256)value);
}
inline void store_lanes(double* to, Simd<double>::Mask mask, Simd<double>::Vector value) {
  _mm256_maskstore_pd(to, (__m256i)mask, (__m256d)value);
}
#else
template <class T>
inline typename Simd<T>::Vector load_lanes(const T* from, typename Simd<T>::Mask mask) {
  typename Simd<T>::Vector value = {};
  for (int i = 0; i < Simd<T>::lanes; ++i) {
    if (mask[i] != 0) value[i] = from[i];
  }
  return value;
}
template <class T>
inline void store_lanes(T* to, typename Simd<T>::Mask mask, typename Simd<T>::Vector value) {
  for (int i = 0; i < Simd<T>::lanes; ++i) {
    if (mask[i] != 0) to[i] = value[i];
  }
}
#endif

template <class T>
inline typename Simd<T>::Vector load_first(const T* from, std::int64_t count) {
  return count >= Simd<T>::lanes ? load(from) : load_lanes(from, first_lanes<T>(count));
}

/// Elements of two vectors in turn: a0 b0 a1 b1 ..., from their lower halves (First = 0) or their upper ones
/// (First = lanes / 2).
template <class T, int First, std::size_t... I>
inline typename Simd<T>::Vector interleave(typename Simd<T>::Vector a, typename Simd<T>::Vector b,
                                           std::index_sequence<I...>) {
  constexpr int lanes = Simd<T>::lanes;
  return __builtin_shufflevector(a, b, (First + static_cast<int>(I) / 2 + static_cast<int>(I) % 2 * lanes)...);
}

/// Every second element of two vectors, the first one included.
template <class T, std::size_t... I>
inline typename Simd<T>::Vector even(typename Simd<T>::Vector a, typename Simd<T>::Vector b,
                                     std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (2 * static_cast<int>(I))...);
}

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
      store(c + v * lanes, value);
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
    std::int64_t i = 0;
    for (; i + lanes <= s->count; i += lanes) store(out + i, load(in + i));
    if (i < s->count) {
      const auto mask = first_lanes<T>(s->count - i);
      store_lanes(out + i, mask, load_lanes(in + i, mask));
    }
  }
}

/// Loads the first `count` of every Step-th element, and touches nothing behind the last of them.
template <class T, int Step>
inline typename Simd<T>::Vector load_every(const T* from, std::int64_t count) {
  constexpr int lanes = Simd<T>::lanes;
  constexpr auto indices = std::make_index_sequence<lanes>{};
  if constexpr (Step == 1) {
    return load_first(from, count);
  } else {
    constexpr int half = lanes / 2;  // of the result, from each half of the elements
    const auto low = load_every<T, Step / 2>(from, count <= half ? 2 * count - 1 : lanes);
    if (count <= half) return even<T>(low, typename Simd<T>::Vector{}, indices);
    const auto high = load_every<T, Step / 2>(from + lanes * (Step / 2), 2 * (count - half) - 1);
    return even<T>(low, high, indices);
  }
}

template <class T, int Step>
inline void stage_rows(T* to, const Staged<T>& staged) {
  using Vector = typename Simd<T>::Vector;
  constexpr int lanes = Simd<T>::lanes;
  const std::int64_t zeros = staged.zeros, count = staged.count, length = staged.length;
  const T* from = staged.from;
  const T* mask = staged.mask;
  for (std::int64_t r = 0; r < staged.rows; ++r, to += length) {
    for (std::int64_t i = 0; i < zeros; i += lanes) store(to + i, Vector{});
    for (std::int64_t i = 0; i < count; i += lanes) {
      Vector value = {};
      if constexpr (Step != 0) {
        value = load_every<T, Step>(from + i * Step, count - i < lanes ? count - i : lanes);
        if (Step == 1 && mask != nullptr) value = load_first(mask + i, count - i) > 0 ? value : Vector{};
      } else {
        for (std::int64_t j = 0; j < lanes && i + j < count; ++j) value[j] = from[(i + j) * staged.step];
      }
      store(to + zeros + i, value);
    }
    for (std::int64_t i = zeros + count; i < length; i += lanes) store(to + i, Vector{});
    if (count == 0) continue;  // there may be no source
    from += staged.row_stride;
    if (mask != nullptr) mask += staged.row_stride;
  }
}

template <class T>
void stage(T* to, const Staged<T>& staged) {
  switch (staged.step) {
    case 1: return stage_rows<T, 1>(to, staged);
    case 2: return stage_rows<T, 2>(to, staged);
    case 4: return stage_rows<T, 4>(to, staged);
    default: return stage_rows<T, 0>(to, staged);
  }
}

template <class T>
void put(const Finished<T>& f) {
  using Vector = typename Simd<T>::Vector;
  using Mask = typename Simd<T>::Mask;
  constexpr int lanes = Simd<T>::lanes;
  constexpr auto indices = std::make_index_sequence<lanes>{};
  const Mask is_even = (count_up<T>() & 1) == 0;
  for (int i = 0; i < f.rows; ++i) {
    T* const to = f.to + i * f.ldc;
    const T* const from = f.from + i * f.ldf;
    const T bias = f.bias == nullptr ? T{0} : f.bias[i];
    const auto finish = [&](T* at, Mask mask, Vector value) {
      value += bias - Vector{};
      if (f.add) value += load_lanes(at, mask);
      if (f.relu) value = value < 0 ? Vector{} : value;
      store_lanes(at, mask, value);
    };
    for (std::int64_t j = 0; j < f.count; j += lanes) {
      const std::int64_t left = f.count - j;
      if (f.step == 1) {
        finish(to + j, first_lanes<T>(left), load_first(from + j, left));
      } else if (f.step == 2) {
        const Vector value = load_first(from + j, left);
        finish(to + 2 * j, first_lanes<T>(2 * left) & is_even, interleave<T, 0>(value, value, indices));
        if (2 * left > lanes) {
          finish(to + 2 * j + lanes, first_lanes<T>(2 * left - lanes) & is_even,
                 interleave<T, lanes / 2>(value, value, indices));
        }
      } else {
        for (std::int64_t l = j; l < f.count && l < j + lanes; ++l) {
          T& at = to[l * f.step];
          const T value = from[l] + bias + (f.add ? at : T{0});
          at = f.relu && value < 0 ? T{0} : value;
        }
      }
    }
  }
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
          stage<T>,
          transpose<T>,
          put<T>};
}

}  // namespace

const InstructionSet LAMINA_SET_OBJECT = {LAMINA_SET_NAME, table<float>(), table<double>()};

}  // namespace lamina::eigen
