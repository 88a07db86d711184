#pragma once
// Micro-kernels with a register tile of six rows by two vectors, for products in which every strip of rows reads the
// packed panels from the L2 cache. More rows in a tile make fewer strips.

#include <type_traits>

#include "micro_kernels.h"

namespace lamina::eigen {

/// The kernels of the instruction set that the including file is compiled for. The tile is six by two for vectors of 32
/// bytes, two of which are a line of memory. For other vectors these are micro_kernels_f32 and micro_kernels_f64.
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
