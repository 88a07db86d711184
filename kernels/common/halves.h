#pragma once
// Conversions between elements of memory and the numbers that kernels compute with: halves become float. A float is
// rounded to the nearest half, ties to even; infinities and NaNs are kept.

#include "launch.h"

#if defined(LAMINA_CUDA_ON_HOST)
#include "kernels/host/halves.h"
#endif

namespace lamina::LAMINA_CUDA_SPACE {

#if !defined(LAMINA_CUDA_ON_HOST)
// The conversions are inline PTX: the headers of CUDA's half types take as long to compile as a kernel.
__device__ inline float widen(F16 half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half.bits));
  return value;
}
__device__ inline float widen(BF16 half) { return __uint_as_float(static_cast<unsigned>(half.bits) << 16); }
__device__ inline void narrow(F16& to, float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(value)); }
__device__ inline void narrow(BF16& to, float value) {
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(value));
#else
  const unsigned bits = __float_as_uint(value);
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  to.bits = static_cast<std::uint16_t>(is_nan ? 0x7fffU : (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
#endif
}
#endif

template <class T>
__device__ Computed<T> load(const T& from) {
  if constexpr (is_stored_half<T>) {
    return widen(from);
  } else {
    return from;
  }
}

template <class T>
__device__ void store(T& to, Computed<T> value) {
  if constexpr (is_stored_half<T>) {
    narrow(to, value);
  } else {
    to = value;
  }
}

}  // namespace lamina::LAMINA_CUDA_SPACE
