#pragma once
// Micro-kernels with a register tile of six rows by two vectors, for products whose packed panels are read from the
// second-level cache by every strip of rows. With more rows in a tile there are fewer strips.

#include <type_traits>

#include "micro_kernels.h"

namespace lamina::eigen {

/// The kernels of the instruction set that the including file is compiled for. The tile is six by two with vectors of
/// 32 bytes, of which two are a line of memory. With others these are micro_kernels_f32 and micro_kernels_f64.
extern const MicroKernels<float> kernels_6x2_f32;
extern const MicroKernels<double> kernels_6x2_f64;

template <class T>
const MicroKernels<T>& kernels_6x2() {
  if constexpr (std::is_same_v<T, float>) {
    return kernels_6x2_f32;
  } else {
    return kernels_6x2_f64;
  }
}

}  // namespace lamina::eigen
