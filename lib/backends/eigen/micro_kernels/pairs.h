#pragma once
// Products of pairs of bf16, as the instructions vdpbf16ps and tdpbf16ps (AMX) compute them.
//
// A pair has 32 bits, and takes the place of a float in products of f32. Its lower half is the element of an even k,
// its upper half the element of the next k. All code that moves floats also moves pairs; only the tiles differ.

#include <cstdint>

#include "micro_kernels.h"
#include "register_sums.h"

namespace lamina::eigen {

/// The numbers of pairs. Pair i is first[i] and second[i] or, with `neighbours`, first[2 i] and first[2 i + 1]. The
/// second number is 0 from pair `second_count` on. A number is 0 where its mask, if any, is not above 0. The output has
/// `rows` dense rows of pairs; neighbours have one row.
template <class From>
struct PairSource {
  const From* first;
  const From* second = nullptr;
  std::int64_t second_count;
  bool neighbours;
  const std::uint16_t* first_mask = nullptr;  ///< mask of bf16
  const std::uint16_t* second_mask = nullptr;
  std::int64_t rows = 1, row_step = 0;  ///< elements from row to row, of numbers and masks
};

/// The kernels of products of pairs. The instruction set's MicroKernels has all other kernels.
struct PairKernels {
  int speedup;        ///< multiply-adds of the instruction (also given for its twin) per multiply-add of f32
  int rows, vectors;  ///< extents of a register tile, as in MicroKernels
  /// Like the kernels of MicroKernels. Sums are of f32, rounded to nearest, ties to even. Denormal numbers count as 0,
  /// and denormal results become 0. vdpbf16ps adds a pair by two multiply-adds, the upper one first. AMX takes up to 16
  /// pairs of a run at a time. It sums lower and upper products separately, from 0 on, and adds the sum of both.
  void (*tile[2][MicroKernels<float>::max_vectors])(const Tile<float>&);
  void (*non_temporal_tile[2][MicroKernels<float>::max_vectors])(const Tile<float>&);
  void (*enter)() = nullptr;  ///< as in MicroKernels
  void (*leave)() = nullptr;
  /// Sums of products of bf16, to which a and b are rounded. In a step each sum grows by the products of one or more
  /// pairs (a, a) and (b, b): `count` counts the multiply-adds of a step.
  RegisterSums<float> sums;
  /// Makes `count` pairs of each row.
  void (*pair)(float* to, const PairSource<std::uint16_t>&, std::int64_t count);
  void (*pair_rounded)(float* to, const PairSource<float>&, std::int64_t count);  ///< pairs from f32, rounded to bf16
  /// sums[i] += from[i], except where the mask, if any, is not above 0.
  void (*add)(double* sums, const std::uint16_t* from, const std::uint16_t* mask, std::int64_t count);
};

}  // namespace lamina::eigen
