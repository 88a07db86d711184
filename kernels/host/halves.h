#pragma once
// Conversions of halves on the host, by the library's own functions.

#include "kernels/types/stream.h"
#include "lib/core/numbers/float16.h"

namespace lamina::cuda_host {

inline float widen(F16 half) { return lamina::widen<DType::f16>(half.bits); }
inline float widen(BF16 half) { return lamina::widen<DType::bf16>(half.bits); }
inline void narrow(F16& to, float value) { to.bits = lamina::narrow<DType::f16>(value); }
inline void narrow(BF16& to, float value) { to.bits = lamina::narrow<DType::bf16>(value); }

}  // namespace lamina::cuda_host
