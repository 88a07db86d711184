#pragma once
// Matrix products in blocks: the loops between packed panels and the micro-kernels, and how work is cut for threads.
//
// c = a * b, where a lies row-major in memory and is read in place, and b has been packed into panels of
// MicroKernels::width() columns, `width` elements for each k. A block of b is sized for the second-level cache; a strip
// of a (tile rows x depth) stays in the first while it meets every panel.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "micro_kernels.h"

namespace lamina::eigen {

/// One block of a product: rows of a times packed panels, all of them `depth` deep.
template <class T>
struct Block {
  const MicroKernels<T>* kernels;
  const T* a;
  std::int64_t lda;
  std::int64_t rows;
  std::int64_t depth;
  const T* panels;
  std::int64_t panel_stride;
  std::int64_t ldb;  ///< elements from k to k of a panel: MicroKernels::width(), or less where one panel holds all
  std::int64_t columns;
  const T* scale = nullptr;  ///< of the sums, one per row of a
  const T* bias = nullptr;   ///< likewise
  bool add = false;          ///< to what c held before the product
  bool relu = false;
  bool begins = true;        ///< the first block of its sums along k
  bool ends = true;          ///< and the last
  T* sums = nullptr;         ///< rows x sums_ld: keeps, from block to block, the tiles that c has no direct place for;
  std::int64_t sums_ld = 0;  ///< without it they are added to c by every block
  bool a_is_far = false;     ///< a is read once, from memory: its next rows are asked for ahead of time
  bool c_is_far = false;     ///< c goes to memory: so are the columns to be written next
};

/// Multiplies a block. `place` knows where c lies:
///   T* direct(column, count)   where row 0 of these columns starts, if they are consecutive elements there, else null;
///   ld                         elements from row to row of direct columns;
///   scatter(tile, row, column, kernels)   puts a tile of finished sums where it belongs.
template <class T, class Place>
void multiply(const Block<T>& block, const Place& place) {
  const MicroKernels<T>& kernels = *block.kernels;
  const std::int64_t width = kernels.width();
  const bool keeps = block.sums != nullptr && !(block.begins && block.ends);
  alignas(64) T spill[2048 / sizeof(T)];
  for (std::int64_t i = 0; i < block.rows; i += kernels.rows) {
    const int rows = static_cast<int>(std::min<std::int64_t>(kernels.rows, block.rows - i));
    const int half = rows <= kernels.rows / 2 ? 1 : 0;
    const T* const bias = block.bias == nullptr ? nullptr : block.bias + i;
    for (std::int64_t j = 0; j < block.columns; j += width) {
      const std::int64_t count = std::min(width, block.columns - j);
      const std::int64_t vectors = (count + kernels.lanes - 1) / kernels.lanes;
      T* const direct = vectors * kernels.lanes == count ? place.direct(j, count) : nullptr;
      Tile<T> tile{.depth = block.depth,
                   .a = block.a + i * block.lda,
                   .lda = block.lda,
                   .rows = rows,
                   .b = block.panels + j / width * block.panel_stride,
                   .ldb = block.ldb,
                   .c = spill,
                   .ldc = width,
                   .scale = block.scale == nullptr ? nullptr : block.scale + i,
                   .bias = nullptr,
                   .add = false,
                   .relu = false};
      if (direct != nullptr) {
        tile.c = direct + i * place.ld;
        tile.ldc = place.ld;
        tile.bias = block.begins ? bias : nullptr;
        tile.add = block.add || !block.begins;
        tile.relu = block.relu && block.ends;
        if (block.c_is_far) tile.c_ahead = width;
      } else if (keeps) {
        tile.c = block.sums + i * block.sums_ld + j;
        tile.ldc = block.sums_ld;
        tile.add = !block.begins;
      }
      if (block.a_is_far) tile.a_ahead = kernels.rows * block.lda;
      kernels.tile[half][vectors - 1](tile);
      if (direct != nullptr || (keeps && !block.ends)) continue;
      place.scatter(Finished<T>{.to = nullptr,
                                .ldc = place.ld,
                                .step = 1,
                                .from = tile.c,
                                .ldf = tile.ldc,
                                .rows = rows,
                                .count = count,
                                .bias = keeps || block.begins ? bias : nullptr,
                                .add = block.add || !(keeps || block.begins),
                                .relu = block.relu && block.ends},
                    i, j, kernels);
    }
  }
}

/// c row-major: element (i, j) at data[i * ld + j].
template <class T>
struct RowMajor {
  T* data;
  std::int64_t ld;
  T* direct(std::int64_t column, std::int64_t) const { return data + column; }
  void scatter(Finished<T> tile, std::int64_t row, std::int64_t column, const MicroKernels<T>& kernels) const {
    tile.to = data + row * ld + column;
    kernels.put(tile);
  }
};

/// How a product is cut for threads: `columns` x `rows` pieces, none of whose sums meet.
struct Partition {
  int columns = 1, rows = 1;
  int parts() const { return columns * rows; }
};

/// The cut that makes the largest piece smallest. Pieces that share columns pack them twice, which is weighed in.
Partition partition(std::int64_t columns, std::int64_t rows, int threads, int lanes, int tile_rows);

/// A piece of [0, count) in units of `grain`; empty pieces have first = last.
struct Piece {
  std::int64_t first, last;
};
constexpr Piece piece(std::int64_t count, std::int64_t grain, int part, int parts) {
  const std::int64_t units = (count + grain - 1) / grain;
  return {std::min(count, units * part / parts * grain), std::min(count, units * (part + 1) / parts * grain)};
}

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr std::int64_t divide_up(std::int64_t value, std::int64_t divisor) { return (value + divisor - 1) / divisor; }

/// Hands out pieces of one block of memory, each aligned to 64 bytes. Without memory it only counts.
class Carver {
 public:
  explicit Carver(void* memory = nullptr) : base_(static_cast<std::byte*>(memory)) {}
  template <class T>
  T* take(std::int64_t count) {
    T* const at = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += static_cast<std::size_t>(round_up(count * static_cast<std::int64_t>(sizeof(T)), 64));
    return at;
  }
  std::size_t used_bytes() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

}  // namespace lamina::eigen
