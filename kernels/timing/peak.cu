// Peak: chains of fused multiply-adds in registers.
//
// A multiply-add's result can be used four cycles later. Each scheduler of a multiprocessor has up to 16 warps, and
// each thread eight chains, so the units are always busy. The body of the loop is 256 multiply-adds and
// the counter of rounds. The sums are written, and compared by the caller, so that no compiler may remove them.
// Registers stay below 32, so that the multiprocessor holds as many threads as possible.

#include "peak.h"

#include "kernels/common/launch.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
__global__ void __launch_bounds__(peak_threads) peak_kernel(T* out, int rounds, T a, T b) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * peak_threads + threadIdx.x;
  const T factor = peak_operand(thread, a), addend = peak_operand(thread, b);
  T x[peak_chains];
#pragma unroll
  for (int chain = 0; chain < peak_chains; ++chain) x[chain] = peak_start<T>(thread, chain);
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int step = 0; step < peak_steps; ++step)
#pragma unroll
      for (int chain = 0; chain < peak_chains; ++chain) x[chain] = fma(x[chain], factor, addend);
  }
  T sum = 0;
#pragma unroll
  for (int chain = 0; chain < peak_chains; ++chain) sum += x[chain];
  out[thread] = sum;
}

}  // namespace

template <class T>
void peak(Stream stream, T* out, int blocks, int rounds, T a, T b) {
  launch(LAMINA_KERNEL(peak_kernel<T>), blocks, peak_threads, 0, stream, out, rounds, a, b);
}

#define LAMINA_INSTANTIATE(T) template void peak(Stream, T*, int, int, T, T);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
