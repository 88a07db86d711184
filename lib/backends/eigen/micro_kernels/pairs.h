#pragma once
// Products of pairs of bf16, as the instruction vdpbf16ps has them.
//
// A pair is 32 bits, and stands where products of f32 have a float: the lower half is the element of an even k, the
// upper half that of the next k. So everything that moves floats also moves pairs. Only the tiles know what they are.

#include <cstdint>

#include "micro_kernels.h"
#include "register_sums.h"

namespace lamina::eigen {

/// Where the numbers of pairs are: those of pair i at first[i * step] and second[i * step]. From pair `second_count` on
/// the second is 0. So is each at which its mask, if there is one, is not above 0. That for each of `rows` rows of
/// pairs, which are dense in what is written.
template <class From>
struct PairSource {
  const From* first;
  const From* second;
  std::int64_t second_count;
  std::int64_t step;
  const std::uint16_t* first_mask = nullptr;  ///< of bf16, in steps too
  const std::uint16_t* second_mask = nullptr;
  std::int64_t rows = 1, row_step = 0;  ///< elements from row to row, of numbers and masks
};

/// What products of pairs have of their own. Everything else is as in the MicroKernels of the instruction set.
struct PairKernels {
  /// As those of MicroKernels. Every pair is two multiply-adds of f32, the upper one first, each of which is rounded to
  /// the nearest, ties to even. Denormal numbers count as 0, and results that would be denormal are 0.
  void (*tile[2][MicroKernels<float>::max_vectors])(const Tile<float>&);
  void (*non_temporal_tile[2][MicroKernels<float>::max_vectors])(const Tile<float>&);
  /// `count` pairs of each row.
  void (*pair)(float* to, const PairSource<std::uint16_t>&, std::int64_t count);
  void (*pair_rounded)(float* to, const PairSource<float>&, std::int64_t count);  ///< of f32, rounded to bf16
  /// sums[i] += from[i], but for those at which the mask, if there is one, is not above 0.
  void (*add)(double* sums, const std::uint16_t* from, const std::uint16_t* mask, std::int64_t count);
  /// With a and b of bf16: each sum grows by 2 a b in a step, and counts twice.
  RegisterSums<float> sums;
};

}  // namespace lamina::eigen
