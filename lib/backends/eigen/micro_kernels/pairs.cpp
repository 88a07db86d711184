// Products of pairs of bf16, for processors with AVX-512, by vectors or (LAMINA_AMX) by the registers of AMX. Each
// version is compiled twice: with the instruction for pairs, and as a twin that emulates the instruction. Every
// processor with AVX-512 can run the twins; only tests do so.

#include "pairs.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>

#include "lib/core/numbers/float16.h"

#define LAMINA_VECTOR_BYTES 64
#define LAMINA_TILE_ROWS 8

namespace lamina::eigen {
namespace {

#include "tile_body.inc"

#if defined(__AVX512BF16__)
/// The terms of a tile, computed by the instruction.
struct Pairs {
  static __m512bh spread(float pair) { return (__m512bh)_mm512_set1_ps(pair); }
  static __m512bh row(Vector<float> pairs) { return (__m512bh)pairs; }
  static void add(Vector<float>& sum, __m512bh a, __m512bh b) {
    sum = (Vector<float>)_mm512_dpbf16_ps((__m512)sum, a, b);
  }
};
struct Flushing {};  // the instruction flushes by itself
#else
/// The terms of a tile, computed by two multiply-adds, as the instruction is documented.
struct Pairs {
  struct Numbers {
    __m512 lower, upper;
  };
  static Numbers row(Vector<float> pairs) {
    const auto bits = (Mask<float>)pairs;
    return {(__m512)(bits << 16), (__m512)(bits & -0x10000)};
  }
  static Numbers spread(float pair) { return row((Vector<float>)_mm512_set1_ps(pair)); }
  static void add(Vector<float>& sum, const Numbers& a, const Numbers& b) {
    const __m512 half = _mm512_fmadd_ps(a.upper, b.upper, (__m512)sum);
    sum = (Vector<float>)_mm512_fmadd_ps(a.lower, b.lower, half);
  }
};
/// While an object exists, the processor takes denormal numbers for 0, and makes none. A compiler may move arithmetic
/// across _mm_setcsr, but not loads and stores across the barriers. So load all operands and store all results while
/// the object exists.
class Flushing {
 public:
  Flushing() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | flush_results | flush_operands);
    barrier();
  }
  ~Flushing() {
    barrier();
    _mm_setcsr(before_);
  }
  Flushing(const Flushing&) = delete;

 private:
  static void barrier() { asm volatile("" ::: "memory"); }

  static constexpr unsigned flush_results = 0x8000, flush_operands = 0x40;
  unsigned before_;
};
#endif

template <int R, int V, bool NonTemporal>
void pair_tile(const Tile<float>& t) {
  [[maybe_unused]] const Flushing flushing;
  tile<float, R, V, false, NonTemporal, Pairs>(t);
}

__m512i words_of(__mmask16 some, const std::uint16_t* from) {
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, from));
}
/// Like lamina::narrow.
__m512i words_of(__mmask16 some, const float* from) {
  const __m512 value = _mm512_maskz_loadu_ps(some, from);
  const auto bits = (Mask<float>)value;
  const auto rounded = (__m512i)(bits + 0x7fff + (bits >> 16 & 1));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_srli_epi32(_mm512_mask_or_epi32(rounded, is_nan, (__m512i)bits, _mm512_set1_epi32(0x400000)), 16);
}

__mmask16 first_of(std::int64_t count) { return static_cast<__mmask16>(count < 16 ? (1U << count) - 1 : 0xffffU); }

/// 16 numbers from number i on. Numbers from `count` on are zeros. A number is 0 where its mask, if any, is not above
/// 0.
template <class From>
__m512i words(const From* from, const std::uint16_t* mask, std::int64_t i, std::int64_t count) {
  if (count <= i) return __m512i{};
  __mmask16 some = first_of(count - i);
  if (mask != nullptr)  // above 0: bits from 1 to 0x7f80, infinity
    some = _mm256_cmplt_epu16_mask(_mm256_sub_epi16(_mm256_maskz_loadu_epi16(some, mask + i), _mm256_set1_epi16(1)),
                                   _mm256_set1_epi16(0x7f80));
  return words_of(some, from + i);
}

template <class From>
void pair(float* to, const PairSource<From>& source, std::int64_t count) {
  PairSource<From> s = source;
  if (s.neighbours) {
    const std::int64_t numbers = count + s.second_count;
    for (std::int64_t i = 0; i < numbers; i += 16)
      _mm256_mask_storeu_epi16(reinterpret_cast<std::uint16_t*>(to) + i, first_of(2 * count - i),
                               _mm512_cvtepi32_epi16(words(s.first, s.first_mask, i, numbers)));
    return;
  }
  for (std::int64_t row = 0; row < s.rows; ++row, to += count) {
    for (std::int64_t i = 0; i < count; i += 16) {
      const __m512i upper = _mm512_slli_epi32(words(s.second, s.second_mask, i, s.second_count), 16);
      _mm512_mask_storeu_epi32(to + i, first_of(count - i),
                               _mm512_or_epi32(words(s.first, s.first_mask, i, count), upper));
    }
    s.first += s.row_step;
    if (s.first_mask != nullptr) s.first_mask += s.row_step;
    if (s.second != nullptr) s.second += s.row_step;
    if (s.second_mask != nullptr) s.second_mask += s.row_step;
  }
}

void add(double* sums, const std::uint16_t* from, const std::uint16_t* mask, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 16) {
    const __m512i bits = _mm512_slli_epi32(words(from, mask, i, count), 16);
    for (int half = 0; half < 2; ++half) {
      const __m256i its = half == 0 ? _mm512_castsi512_si256(bits) : _mm512_extracti64x4_epi64(bits, 1);
      const auto some = static_cast<__mmask8>(first_of(count - i) >> 8 * half);
      double* const to = sums + i + 8 * half;
      _mm512_mask_storeu_pd(to, some, _mm512_maskz_loadu_pd(some, to) + _mm512_cvtps_pd(_mm256_castsi256_ps(its)));
    }
  }
}

/// The pair (number, number), rounded to bf16.
float pair_of(float number) {
  return std::bit_cast<float>(std::uint32_t{lamina::narrow<DType::bf16>(number)} * 0x10001U);
}

#if defined(LAMINA_AMX)
#include "amx_body.inc"
#else
constexpr int sums = 24;  // sums that the registers hold besides a and b

double total(std::int64_t steps, float a, float b) {
  const auto x = Pairs::spread(pair_of(a)), y = Pairs::spread(pair_of(b));
  Vector<float> sum[sums];  // different first numbers, or a compiler might merge all sums into one
  for (int v = 0; v < sums; ++v)
    for (int lane = 0; lane < lanes<float>; ++lane) sum[v][lane] = static_cast<float>(v * lanes<float> + lane);
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 32
    for (Vector<float>& each : sum) Pairs::add(each, x, y);
  }
  double all = 0;
  for (const Vector<float>& each : sum)
    for (int lane = 0; lane < lanes<float>; ++lane) all += static_cast<double>(each[lane]);
  return all;
}

#endif

}  // namespace

extern const PairKernels LAMINA_PAIRS;
const PairKernels LAMINA_PAIRS = {
#if defined(LAMINA_AMX)
    .speedup = 16,
    .rows = 2 * side,
    .vectors = 2,
    .tile = {{square_tile<2, 1, false>, square_tile<2, 2, false>},
             {square_tile<1, 1, false>, square_tile<1, 2, false>}},
    .non_temporal_tile = {{square_tile<2, 1, true>, square_tile<2, 2, true>},
                          {square_tile<1, 1, true>, square_tile<1, 2, true>}},
    .enter = enter,
    .leave = leave,
    .sums = {4 * side * side * 2 * side, total},
#else
    .speedup = 2,
    .rows = tile_rows,
    .vectors = tile_vectors,
    .tile = {{pair_tile<tile_rows, 1, false>, pair_tile<tile_rows, 2, false>, pair_tile<tile_rows, 3, false>},
             {pair_tile<tile_rows / 2, 1, false>, pair_tile<tile_rows / 2, 2, false>,
              pair_tile<tile_rows / 2, 3, false>}},
    .non_temporal_tile = {{pair_tile<tile_rows, 1, true>, pair_tile<tile_rows, 2, true>, pair_tile<tile_rows, 3, true>},
                          {pair_tile<tile_rows / 2, 1, true>, pair_tile<tile_rows / 2, 2, true>,
                           pair_tile<tile_rows / 2, 3, true>}},
    .sums = {2 * sums * lanes<float>, total},
#endif
    .pair = pair<std::uint16_t>,
    .pair_rounded = pair<float>,
    .add = add};

}  // namespace lamina::eigen
