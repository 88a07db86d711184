#pragma once
// Micro-kernels with a taller register tile, for products whose packed panels are read from the second-level cache by
// every strip of rows: with taller tiles there are fewer strips.

#include <type_traits>

#include "micro_kernels.h"

namespace lamina::eigen {

/// Those of the instruction set that the including file is compiled for. Where two vectors are a line of memory, a
/// panel is two vectors wide and the tile fills the registers by its rows. Elsewhere as micro_kernels_f32 and _f64.
extern const MicroKernels<float> tall_kernels_f32;
extern const MicroKernels<double> tall_kernels_f64;

template <class T>
const MicroKernels<T>& tall_kernels() {
  if constexpr (std::is_same_v<T, float>) {
    return tall_kernels_f32;
  } else {
    return tall_kernels_f64;
  }
}

}  // namespace lamina::eigen
