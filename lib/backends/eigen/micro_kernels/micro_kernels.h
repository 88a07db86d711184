#pragma once
// The innermost loops of every product: tables of functions, one table for each instruction set.

#include <cstdint>
#include <limits>

#include "activation_kernels.h"
#include "epilogue.h"
#include "tap_kernels.h"
#include "winograd_kernels.h"

namespace lamina::eigen {

/// A run of consecutive elements to be copied.
struct Segment {
  std::int64_t to, from, count;
};

/// Rows of panels, each made of runs: for each segment s, row r has from[starts[r] + s.from ...] at s.to + r * ld.
template <class T>
struct PackedRows {
  T* to;            ///< row 0
  std::int64_t ld;  ///< elements from row to row of a panel: its width
  const T* from;
  const std::int64_t* starts;  ///< start of each row in `from`
  std::int64_t rows;
  const Segment* segments;  ///< panel after panel, each from its first column on
  std::int64_t count;       ///< number of segments
};

/// Prefetches of a product for the next products. Addresses may be out of bounds.
template <class T>
struct Prefetch {
  std::int64_t a = 0;        ///< distance in elements from a to the prefetched addresses; 0: none
  std::int64_t c = 0;        ///< distance in elements from c to the prefetched addresses, for writing; 0: none
  const T* panel = nullptr;  ///< panel to prefetch, its rows `ldb` apart; or null
  int first = 0, rows = 0;   ///< rows of the panel: [first, first + rows) for every 64 bytes along a
};

/// c[i][j] = sum over k of a[i][k] * b[k][j], through the epilogue, for `rows` rows of a register tile.
template <class T>
struct Tile {
  std::int64_t depth;  ///< extent of k
  const T* a;          ///< row-major, in place
  std::int64_t lda;
  int rows = 0;          ///< number of rows, 1 to MicroKernels::rows
  const T* b = nullptr;  ///< one panel: a row of consecutive elements for each k, rows `ldb` apart
  std::int64_t ldb;
  T* c = nullptr;
  std::int64_t ldc;
  const Epilogue<T>* epilogue = &no_epilogue<T>;  ///< epilogue of the first row of c
  Prefetch<T> prefetch = {};
  std::int64_t run = std::numeric_limits<std::int64_t>::max();  ///< elements of a run in a row of a
  std::int64_t run_pitch = 0;                                   ///< elements from the start of a run to the next
};

/// to[i * ldt + j] = scale[i] * sum over k of a[i * lda + k] * columns[j * ld + k], for few columns. A column has zeros
/// up to the next whole vector. A null scale stands for ones.
template <class T>
struct FewColumns {
  T* to;
  std::int64_t ldt;
  const T* a;
  std::int64_t lda, rows;
  const T* columns;
  std::int64_t ld, count;
  std::int64_t depth;
  const T* scale;
};

/// Consecutive rows of `length` elements: `zeros` zeros, then from[i * step] for i below count, then zeros.
/// With a mask, elements are 0 where the mask is not above 0.
template <class T>
struct Staged {
  const T* from = nullptr;
  const T* mask = nullptr;  ///< mask, with step 1 only
  std::int64_t rows, row_stride;
  std::int64_t zeros, count = 0, length, step;
  std::int64_t prefetch = 0;  ///< distance in elements from reads to prefetched addresses; 0: none
};

/// to[i * ldc + j * step] = from[i * ldf + j], through the epilogue without its scale, which the tile of the sums has
/// applied. If `width` is not 0, the other elements of to[i * ldc + 0 .. width - 1] become 0, and so do `below` further
/// rows of `width` elements, `pitch` apart; then width <= count * step, and nothing is added. With `left`, step is 2
/// and elements of `left` and `from` alternate: to[i * ldc + 2 j] = left[i * left_ld + j] (+ the old value), and to[i *
/// ldc + 2 j + 1] gets the element of `from`.
template <class T>
struct OutputTile {
  T* to = nullptr;
  std::int64_t ldc, step = 1;
  const T* from;
  std::int64_t ldf;
  int rows;
  std::int64_t count;
  Epilogue<T> epilogue = {};
  std::int64_t width = 0, below = 0, pitch = 0;
  const T* left = nullptr;
  std::int64_t left_ld = 0;
};

constexpr int most_tile_bytes = 4096;  // sums of the largest register tile: 32 rows of 32 by AMX

/// A panel is up to `vectors * lanes` wide. tile[0][v - 1] computes v vectors of a panel, tile[1][v - 1] does so for at
/// most rows / 2 rows. Functions above `vectors` are null.
template <class T>
struct MicroKernels {
  static constexpr int max_vectors = 3;
  int rows;     ///< rows of a register tile
  int lanes;    ///< elements of a vector
  int vectors;  ///< vectors of a panel
  void (*tile[2][max_vectors])(const Tile<T>&);
  /// Like `tile`, for a column-major a: its columns are `lda` apart, and readable for all rows of a register tile. Null
  /// where tiles multiply pairs of bf16.
  void (*tile_of_columns[2][max_vectors])(const Tile<T>&);
  /// Like `tile`, by non-temporal stores if vectors are lines of memory; vectors of c then start at lines.
  void (*non_temporal_tile[2][max_vectors])(const Tile<T>&);
  void (*enter)() = nullptr;  ///< called by a thread before it computes tiles, if not null
  void (*leave)() = nullptr;  ///< called after the tiles

  void (*few_columns)(const FewColumns<T>&);  ///< null where tiles multiply pairs of bf16

  /// Copies segments in order, each rounded up to whole vectors in `to` and `from`.
  void (*copy)(T* to, const T* from, const Segment* segments, std::int64_t count);
  /// Copies segments in order and touches nothing else; prefetches elements `distance` after each.
  void (*copy_exact)(T* to, const T* from, const Segment* segments, std::int64_t count, std::int64_t distance);
  /// Packs rows of panels. May read behind a segment, and write behind a row, up to a panel's width less one element.
  void (*pack)(const PackedRows<T>&);
  /// Makes staged rows. May write up to a vector less one element after the last.
  void (*stage)(T* to, const Staged<T>&);
  /// to[k * ldt + j] = from[j * ldf + k], or 0 where mask (if not null) is not above 0 at [j * ldm + k].
  void (*transpose)(T* to, std::int64_t ldt, const T* from, std::int64_t ldf, const T* mask, std::int64_t ldm,
                    std::int64_t columns, std::int64_t depth);
  /// Stores finished sums; touches nothing else.
  void (*store_tile)(const OutputTile<T>&);
  WinogradKernels<T> winograd;
  ActivationKernels<T> activations;
  TapKernels<T> taps;

  int width() const { return vectors * lanes; }
};

/// The tables of the instruction set that the including file is compiled for.
extern const MicroKernels<float> micro_kernels_f32;
extern const MicroKernels<double> micro_kernels_f64;

/// Tables with a register tile of six rows by two vectors, for products in which every strip of rows reads the packed
/// panels from the L2 cache: more rows in a tile make fewer strips. The tile is six by two for vectors of 32 bytes, two
/// of which are a line of memory. For other vectors these are the tables above.
extern const MicroKernels<float> kernels_6x2_f32;
extern const MicroKernels<double> kernels_6x2_f64;

}  // namespace lamina::eigen
