#pragma once
// Sums over taps along the rows of planes, as depthwise convolutions need them: a table of functions for each
// instruction set.
//
// A copy of a plane has its border of zeros, and is sorted by residues modulo a stride. A tap is then
// an offset into it, and what it reads for a row of results is a run of consecutive elements.

#include <cstdint>

#include "epilogue.h"

namespace lamina::eigen {

/// Rows of a plane that are copied: the first element in the copy and in the plane, how many rows of how many elements.
struct CopiedRows {
  std::int64_t to, from, rows, count;
};

/// to[p * to_plane + part.to + i * ld + j] = from[p * from_plane + part.from + i * row_stride + j * step], or 0 where
/// mask (if not null) is not above 0 there, for each part of each plane. Up to a vector less one element after a row of
/// the copy are set to 0; parts are in the order of the copy.
template <class T>
struct TapCopy {
  T* to;
  std::int64_t to_plane, ld;
  const T* from;
  const T* mask;
  std::int64_t from_plane, row_stride, step;
  std::int64_t planes;
  const CopiedRows* parts;
  std::int64_t count;
};

/// to[i * ldc + j] = sum over t of weights[t] * from[i * ld + offsets[t] + j] through the epilogue, for `rows` rows of
/// `cols` elements. Up to a vector less one element after those of `from` are read.
template <class T>
struct TapSums {
  T* to;
  std::int64_t ldc;
  const T* end;  ///< a row's last vector may write beyond the row up to here: a later row of `to` overwrites that
  const T* from;
  std::int64_t ld;
  const std::int64_t* offsets;
  const T* weights;
  std::int64_t taps;
  std::int64_t rows, cols;
  Epilogue<T> epilogue;  ///< epilogue of the only channel
};

/// sums[t * lanes + (j % lanes)] += dy[i * ldy + j] * from[i * ld + offsets[t] + j] for `rows` rows of `cols` elements;
/// dy counts as 0 where mask (if not null) is not above 0. Reads as TapSums does.
template <class T>
struct TapProducts {
  T* sums;
  const T* dy;
  const T* mask;
  std::int64_t ldy;
  const T* from;
  std::int64_t ld;
  const std::int64_t* offsets;
  std::int64_t taps;
  std::int64_t rows, cols;
};

/// to[(i * cols + j) * lanes + f] = scale[f] * sum over t of weights[t * filters + f] * from[i * ld + offsets[t] + j],
/// for `rows` rows of `cols` positions, at least least_columns, and the filters of a vector of `lanes`, or of half of
/// one. Null as a scale stands for ones.
template <class T>
struct FilterTaps {
  T* to;
  const T* from;
  std::int64_t ld;
  const std::int64_t* offsets;
  const T* weights;
  std::int64_t taps;
  std::int64_t rows, cols;
  const T* scale;

  static constexpr int least_columns = 7;
};

template <class T>
struct TapKernels {
  void (*copy)(const TapCopy<T>&);
  /// sums[0] takes any taps. The others take in each plane a square of 3 x 3, 5 x 5 or 7 x 7 taps side by side, in the
  /// order of rows: the offset of tap (r, s) is that of the first plus r * ld + s.
  void (*sums[4])(const TapSums<T>&);
  void (*products)(const TapProducts<T>&);
  void (*filters)(const FilterTaps<T>&);
  void (*half_filters)(const FilterTaps<T>&);  ///< of half a vector; of a whole one if it has less than eight lanes

  /// The index in `sums` for squares of this many taps; 0 if they have no function of their own.
  static constexpr int square(int extent) { return extent == 3 || extent == 5 || extent == 7 ? extent / 2 : 0; }
};

}  // namespace lamina::eigen
