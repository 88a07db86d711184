#pragma once
// The innermost loops of every product: tables of functions, which each instruction set fills with vectors of its own.

#include <cstdint>
#include <limits>

#include "winograd_kernels.h"

namespace lamina::eigen {

/// A run of consecutive elements to be copied.
struct Segment {
  std::int64_t to, from, count;
};

/// c[i][j] = (scale[i] *) sum over k of a[i][k] * b[k][j] (+ bias[i]) (+ c[i][j]), then max(., 0), for `rows` rows of a
/// register tile.
template <class T>
struct Tile {
  std::int64_t depth;  ///< extent of k
  const T* a;          ///< row-major, as it lies in memory
  std::int64_t lda;
  int rows;    ///< 1 to MicroKernels::rows
  const T* b;  ///< one panel: consecutive elements for each k, `ldb` from k to k
  std::int64_t ldb;
  T* c;
  std::int64_t ldc;
  const T* scale;  ///< one per row, or null
  const T* bias;   ///< likewise
  bool add;        ///< c is read and added to; otherwise it is only written
  bool relu;
  std::int64_t a_ahead = 0;     ///< elements from those of a to others that memory is asked for meanwhile; 0: none
  const T* b_next = nullptr;    ///< a panel that memory is asked for meanwhile, `ldb` from k to k, or null:
  int b_first = 0, b_rows = 0;  ///< of every 64 bytes along a, this row and as many
  std::int64_t c_ahead = 0;     ///< likewise of c, to be written; 0: none
  std::int64_t run = std::numeric_limits<std::int64_t>::max();  ///< rows of a are runs of so many elements,
  std::int64_t run_pitch = 0;                                   ///< so far from one's start to the next one's
};

/// Rows of `length` elements, one behind the other: `zeros` zeros, then from[i * step] for i below count (0 where mask
/// is not null and not above 0 there), then zeros.
template <class T>
struct Staged {
  const T* from;
  const T* mask;  ///< with step 1 only
  std::int64_t rows, row_stride;
  std::int64_t zeros, count, length, step;
  std::int64_t ahead = 0;  ///< elements from those read to others that memory is asked for meanwhile; 0: none
};

/// to[i * ldc + j * step] = from[i * ldf + j] (+ bias[i]) (+ the old value), then max(., 0). Where `width` is not 0,
/// the other ones of to[i * ldc + 0 .. width - 1] are set to 0, and so are `below` further rows of as many, `pitch`
/// apart; width <= count * step then, and nothing is added to. With `left`, step is 2 and each of these elements
/// follows one of the left ones: to[i * ldc + j * 2] = left[i * left_ld + j] (+ the old value), and the above one
/// further.
template <class T>
struct Finished {
  T* to;
  std::int64_t ldc, step;
  const T* from;
  std::int64_t ldf;
  int rows;
  std::int64_t count;
  const T* bias;
  bool add, relu;
  std::int64_t width = 0, below = 0, pitch = 0;
  const T* left = nullptr;
  std::int64_t left_ld = 0;
};

/// A panel is up to `vectors * lanes` wide. tile[half][v - 1] computes v vectors of it, half != 0 at most rows / 2
/// rows.
template <class T>
struct MicroKernels {
  static constexpr int max_vectors = 3;
  int rows;     ///< of a register tile
  int lanes;    ///< elements of a vector
  int vectors;  ///< of a panel
  void (*tile[2][max_vectors])(const Tile<T>&);
  /// Likewise with a column-major: `lda` from k to k, and readable for all rows of a register tile.
  void (*tile_of_columns[2][max_vectors])(const Tile<T>&);
  /// As `tile`, by non-temporal stores where vectors are lines of memory; those of c start where lines do.
  void (*non_temporal_tile[2][max_vectors])(const Tile<T>&);

  /// Copies segments in order, each rounded up to whole vectors in `to` and `from`.
  void (*copy)(T* to, const T* from, const Segment* segments, std::int64_t count);
  /// Copies segments in order and touches nothing else; asks memory for what lies `ahead` elements behind each.
  void (*copy_exact)(T* to, const T* from, const Segment* segments, std::int64_t count, std::int64_t ahead);
  /// Makes staged rows. May write a vector less one element beyond the last.
  void (*stage)(T* to, const Staged<T>&);
  /// to[k * ldt + j] = from[j * ldf + k], or 0 where mask (if not null) is not above 0 at [j * ldm + k].
  void (*transpose)(T* to, std::int64_t ldt, const T* from, std::int64_t ldf, const T* mask, std::int64_t ldm,
                    std::int64_t columns, std::int64_t depth);
  /// Writes finished sums to where they belong; touches nothing else.
  void (*put)(const Finished<T>&);
  WinogradKernels<T> winograd;

  int width() const { return vectors * lanes; }
};

/// Those of the instruction set that the including file is compiled for.
extern const MicroKernels<float> micro_kernels_f32;
extern const MicroKernels<double> micro_kernels_f64;

}  // namespace lamina::eigen
