// Multiply-adds in registers, for the instruction set that this file is compiled for.

#include "register_sums.h"

namespace lamina::eigen {
namespace {

#if defined(__AVX512F__)
#define LAMINA_VECTOR_BYTES 64
#elif defined(__AVX__)
#define LAMINA_VECTOR_BYTES 32
#else  // generic
#define LAMINA_VECTOR_BYTES 16
#endif

// Vectors that the registers hold besides a and b. Two units with a latency of five cycles need ten sums, four units
// with a latency of four cycles need sixteen.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int vectors = 24;  // of 32 registers
#else
constexpr int vectors = 12;  // of 16
#endif

template <class T>
constexpr int lanes = LAMINA_VECTOR_BYTES / static_cast<int>(sizeof(T));

template <class T>
double total(std::int64_t steps, T a, T b) {
  // NOLINTNEXTLINE(modernize-use-using): g++ drops the attributes of a dependent type in an alias declaration
  typedef T Vector __attribute__((vector_size(LAMINA_VECTOR_BYTES)));
  const Vector factor = a - Vector{}, addend = b - Vector{};
  Vector sum[vectors];  // different first numbers, or a compiler might merge all sums into one
  for (int v = 0; v < vectors; ++v)
    for (int lane = 0; lane < lanes<T>; ++lane) sum[v][lane] = static_cast<T>(v * lanes<T> + lane);
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 32
    for (Vector& each : sum) each = each * factor + addend;
  }
  double all = 0;
  for (const Vector& each : sum)
    for (int lane = 0; lane < lanes<T>; ++lane) all += static_cast<double>(each[lane]);
  return all;
}

}  // namespace

const RegisterSums<float> register_sums_f32 = {vectors * lanes<float>, total<float>};
const RegisterSums<double> register_sums_f64 = {vectors * lanes<double>, total<double>};

}  // namespace lamina::eigen
