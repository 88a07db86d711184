// Products of pairs of bf16, for processors with AVX-512, by vectors or (LAMINA_AMX) by the registers of AMX. Each is
// compiled twice: with its instruction, and as a plain twin that does without it. Every processor with AVX-512 can run
// the twins; only tests do so.

#include "pairs.h"

#include <immintrin.h>

#include <bit>
#include <numeric>

#include "lib/core/numbers/float16.h"

#define LAMINA_VECTOR_BYTES 64
#define LAMINA_TILE_ROWS 8

namespace lamina::eigen {
namespace {

#include "tile_body.inc"

#if defined(__AVX512BF16__)
/// The terms of a tile, by the instruction.
struct Pairs {
  static __m512bh spread(float pair) { return (__m512bh)_mm512_set1_ps(pair); }
  static __m512bh row(Vector<float> pairs) { return (__m512bh)pairs; }
  static void add(Vector<float>& sum, __m512bh a, __m512bh b) {
    sum = (Vector<float>)_mm512_dpbf16_ps((__m512)sum, a, b);
  }
};
struct Flushing {};  // the instruction flushes by itself
#else
/// The terms of a tile, by the two multiply-adds that the instruction is documented to be.
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
/// During its life the processor takes denormal numbers for 0, and makes none. A compiler may move arithmetic across
/// _mm_setcsr, but not loads and stores across the barriers. So arithmetic stays inside if its operands are loaded and
/// its results stored inside.
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

std::uint32_t bits_of(std::uint16_t word) { return word; }
std::uint32_t bits_of(float value) { return lamina::narrow<DType::bf16>(value); }

/// Number i, or 0 if its mask is 0, below 0 or NaN.
template <bool Masked, class From>
std::uint32_t number(const From* from, const std::uint16_t* mask, std::int64_t i) {
  const std::uint32_t bits = bits_of(from[i]);
  if constexpr (Masked) return static_cast<std::uint16_t>(mask[i] - 1) < 0x7f80 ? bits : 0;
  return bits;
}

template <bool Masked, class From>
void pair_run(float* to, const PairSource<From>& source, std::int64_t step, std::int64_t count) {
  PairSource<From> s = source;
  for (std::int64_t row = 0; row < s.rows; ++row, to += count) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < s.second_count; ++i)
      to[i] = std::bit_cast<float>(number<Masked>(s.first, s.first_mask, i * step) |
                                   number<Masked>(s.second, s.second_mask, i * step) << 16);
#pragma GCC ivdep
    for (std::int64_t i = s.second_count; i < count; ++i)
      to[i] = std::bit_cast<float>(number<Masked>(s.first, s.first_mask, i * step));
    s.first += s.row_step;
    s.second += s.row_step;
    if (!Masked) continue;
    s.first_mask += s.row_step;
    s.second_mask += s.row_step;
  }
}

/// Compilers vectorise only loops with a known step.
template <bool Masked, class From>
void pair_by_step(float* to, const PairSource<From>& source, std::int64_t count) {
  if (source.step == 1) return pair_run<Masked>(to, source, 1, count);
  if (source.step == 2) return pair_run<Masked>(to, source, 2, count);
  pair_run<Masked>(to, source, source.step, count);
}

template <class From>
void pair(float* to, const PairSource<From>& source, std::int64_t count) {
  if (source.first_mask != nullptr) return pair_by_step<true>(to, source, count);
  pair_by_step<false>(to, source, count);
}

template <bool Masked>
void add_run(double* sums, const std::uint16_t* from, const std::uint16_t* mask, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i)
    sums[i] += static_cast<double>(std::bit_cast<float>(number<Masked>(from, mask, i) << 16));
}

void add(double* sums, const std::uint16_t* from, const std::uint16_t* mask, std::int64_t count) {
  if (mask != nullptr) return add_run<true>(sums, from, mask, count);
  add_run<false>(sums, from, nullptr, count);
}

#if defined(LAMINA_AMX)
#include "amx_body.inc"
#else
constexpr int sums = 24;  // sums that the registers hold besides a and b

double total(std::int64_t steps, float a, float b) {
  const float spread_a = std::bit_cast<float>(bits_of(a) * 0x10001U);
  const float spread_b = std::bit_cast<float>(bits_of(b) * 0x10001U);
  const auto x = Pairs::spread(spread_a), y = Pairs::spread(spread_b);
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
    .tile = {{square_tile<2, 1, false>, square_tile<2, 2, false>}, {square_tile<1, 1, false>, square_tile<1, 2, false>}},
    .non_temporal_tile = {{square_tile<2, 1, true>, square_tile<2, 2, true>},
                          {square_tile<1, 1, true>, square_tile<1, 2, true>}},
    .enter = enter,
    .leave = leave,
    .sums = {square_sums * side * side * side * 2, total},
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
