#pragma once
// Sums over taps along the rows of planes, as depthwise convolutions need them: a table of functions for each
// instruction set.
//
// A copy of a plane has its border of zeros, and is sorted by residues modulo a stride. A tap is then an offset into
// the copy. For a row of results it reads a run of consecutive elements.

#include <cstdint>

#include "epilogue.h"

namespace lamina::eigen {

/// Rows of a plane that are copied: first element in the copy and in the plane, number of rows, elements of a row.
struct CopiedRows {
  std::int64_t to, from, rows, count;
};

/// to[p * to_plane + part.to + i * ld + j] = from[p * from_plane + part.from + i * row_stride + j * step], or 0 where
/// mask (if not null) is not above 0 there, for each part of each plane. Behind a row of the copy, up to a vector less
/// one element become 0. Parts are in the order of the copy.
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
/// `cols` elements. `ld` is a whole number of vectors. Behind the last row of `from` up to a vector is read.
template <class T>
struct TapSums {
  T* to;
  std::int64_t ldc;
  const T* end;  ///< a row's last vector may write behind the row, up to here; a later row overwrites it
  const T* from;
  std::int64_t ld;
  const std::int64_t* offsets;
  const T* weights;
  std::int64_t taps;
  std::int64_t rows, cols;
  Epilogue<T> epilogue;  ///< epilogue of the only channel
};

/// sums[t * lanes + (j % lanes)] += dy[i * ldy + j] * from[i * ld + offsets[t] + j] for `rows` rows of `cols` elements;
/// dy counts as 0 where mask (if not null) is not above 0. Behind each row of `from` up to a vector less one element is
/// read.
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
/// for `rows` rows of `cols` positions. `cols` is at least least_columns; `filters` is `lanes`, or half of it. A null
/// scale stands for ones.
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
  /// order of rows: the offset of tap (r, s) is the first tap's offset plus r * ld + s.
  void (*sums[4])(const TapSums<T>&);
  void (*products)(const TapProducts<T>&);
  void (*filters)(const FilterTaps<T>&);
  void (*half_filters)(const FilterTaps<T>&);  ///< sums for half a vector, or for a whole vector of under eight lanes

  /// The index in `sums` for squares with sides of `extent` taps; 0 if they have no special function.
  static constexpr int square(int extent) { return extent == 3 || extent == 5 || extent == 7 ? extent / 2 : 0; }
};

}  // namespace lamina::eigen
