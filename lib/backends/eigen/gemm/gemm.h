#pragma once
// Matrix products in blocks: the loops between panels and the micro-kernels, and how work is cut for threads.
//
// c = a * b, where a lies row-major in memory and is read in place, and b lies in panels of up to MicroKernels::width()
// columns: packed, `ldb` elements for each k, or where it is. A block of b is sized for the second-level cache; a strip
// of a (tile rows x depth) stays in the first while it meets every panel.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "../micro_kernels/micro_kernels.h"
#include "../runtime/non_temporal.h"

namespace lamina::eigen {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr std::int64_t divide_up(std::int64_t value, std::int64_t divisor) { return (value + divisor - 1) / divisor; }

/// Some columns of a block, up to MicroKernels::width() of them.
template <class T>
struct Panel {
  const T* b;           ///< their first row
  T* c;                 ///< where row 0 of c has them, if it has room for whole vectors there; else null
  std::int64_t column;  ///< the first one's number
  std::int64_t count;
  std::int64_t vectors;  ///< that hold so many
};

/// The vectors of the next panel where so many are left: `most`, but one less of the last `most` + 1, since a product
/// with a single vector waits for its own sums.
constexpr std::int64_t panel_vectors(std::int64_t left, std::int64_t most) {
  return std::min(left, left == most + 1 && most > 2 ? most - 1 : most);
}

/// One block of a product: rows of a times panels, all of them `depth` deep.
template <class T>
struct Block {
  const MicroKernels<T>* kernels;
  const T* a;
  std::int64_t lda;
  std::int64_t rows;
  std::int64_t depth;
  std::int64_t run = std::numeric_limits<std::int64_t>::max();  ///< rows of a are runs of so many elements,
  std::int64_t run_pitch = 0;                                   ///< so far from one's start to the next one's
  std::span<const Panel<T>> panels;
  std::int64_t b_offset = 0;  ///< elements from a panel's first row to the block's
  std::int64_t ldb;           ///< elements from row to row of a panel
  std::int64_t c_offset = 0;  ///< elements from row 0 of c to the block's first
  std::int64_t ldc;           ///< elements from row to row of c
  const T* scale = nullptr;   ///< of the sums, one per row of a
  const T* bias = nullptr;    ///< likewise
  bool add = false;           ///< to what c held before the product
  bool relu = false;
  bool begins = true;        ///< the first block of its sums along k
  bool ends = true;          ///< and the last
  T* sums = nullptr;         ///< rows x sums_ld: keeps, from block to block, the tiles that c has no direct place for;
  std::int64_t sums_ld = 0;  ///< without it they are added to c by every block
  bool a_is_far = false;     ///< a comes from memory: the first panel meets rows while the next ones are asked for
  bool b_is_far = false;     ///< so do panels: the first rows meet one while the next one is asked for
  bool c_is_far = false;     ///< so does c: while columns are written, the next ones are asked for
  /// c is stored by non-temporal stores where nothing is added to it (also by earlier blocks along k), where it has a
  /// direct place whose rows are whole lines of memory, and where vectors are.
  bool non_temporal = false;
  std::span<const Panel<T>> next = {};  ///< panels of the next block, if they are far: all rows ask for a share of them
  std::int64_t next_offset = 0;         ///< as b_offset
};

/// Whether the rows that a tile writes are whole lines of memory.
template <class T>
bool whole_lines(const Tile<T>& tile, const MicroKernels<T>& kernels) {
  constexpr std::int64_t line = line_bytes / static_cast<std::int64_t>(sizeof(T));
  return kernels.lanes == line && tile.ldc % line == 0 && reinterpret_cast<std::uintptr_t>(tile.c) % line_bytes == 0;
}

/// Multiplies a block. put(tile, row, column) puts a tile of finished sums where it belongs, if it has no direct place.
template <class T, class Put>
void multiply(const Block<T>& block, const Put& put) {
  const MicroKernels<T>& kernels = *block.kernels;
  const std::int64_t width = kernels.width();
  const bool keeps = block.sums != nullptr && !(block.begins && block.ends);
  constexpr std::int64_t line = line_bytes / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t share = divide_up(line, divide_up(block.rows, kernels.rows));  // of every `line` rows of a panel
  alignas(line_bytes) T spill[2048 / sizeof(T)];
  for (std::int64_t i = 0; i < block.rows; i += kernels.rows) {
    const int rows = static_cast<int>(std::min<std::int64_t>(kernels.rows, block.rows - i));
    const int half = rows <= kernels.rows / 2 ? 1 : 0;
    const T* const bias = block.bias == nullptr ? nullptr : block.bias + i;
    std::int64_t column = 0;
    for (const Panel<T>& panel : block.panels) {
      Tile<T> tile{.depth = block.depth,
                   .a = block.a + i * block.lda,
                   .lda = block.lda,
                   .rows = rows,
                   .b = panel.b + block.b_offset,
                   .ldb = block.ldb,
                   .c = spill,
                   .ldc = width,
                   .scale = block.scale == nullptr ? nullptr : block.scale + i,
                   .bias = nullptr,
                   .add = false,
                   .relu = false,
                   .run = block.run,
                   .run_pitch = block.run_pitch};
      bool non_temporal = false;
      if (panel.c != nullptr) {
        tile.c = panel.c + block.c_offset + i * block.ldc;
        tile.ldc = block.ldc;
        tile.bias = block.begins ? bias : nullptr;
        tile.add = block.add || !block.begins;
        tile.relu = block.relu && block.ends;
        if (block.c_is_far) tile.c_ahead = width;
        non_temporal = block.non_temporal && !tile.add && block.ends && whole_lines(tile, kernels);
      } else if (keeps) {
        tile.c = block.sums + i * block.sums_ld + column;
        tile.ldc = block.sums_ld;
        tile.add = !block.begins;
      }
      const auto index = static_cast<std::size_t>(&panel - block.panels.data());
      const std::int64_t first = i / kernels.rows * share;
      if (block.b_is_far && i == 0 && index + 1 < block.panels.size()) {
        tile.b_next = block.panels[index + 1].b + block.b_offset;
        tile.b_rows = static_cast<int>(line);
      } else if (index < block.next.size() && first < line) {
        tile.b_next = block.next[index].b + block.next_offset;
        tile.b_first = static_cast<int>(first);
        tile.b_rows = static_cast<int>(std::min(share, line - first));
      }
      if (block.a_is_far && column == 0) tile.a_ahead = kernels.rows * block.lda;
      column += panel.vectors * kernels.lanes;
      (non_temporal ? kernels.non_temporal_tile : kernels.tile)[half][panel.vectors - 1](tile);
      if (panel.c != nullptr || (keeps && !block.ends)) continue;
      put(Finished<T>{.to = nullptr,
                      .ldc = block.ldc,
                      .step = 1,
                      .from = tile.c,
                      .ldf = tile.ldc,
                      .rows = rows,
                      .count = panel.count,
                      .bias = keeps || block.begins ? bias : nullptr,
                      .add = block.add || !(keeps || block.begins),
                      .relu = block.relu && block.ends},
          i, panel.column);
    }
  }
}

/// Puts tiles of a c that is row-major: element (i, j) at data[i * ld + j].
template <class T>
struct RowMajor {
  T* data;
  std::int64_t ld;
  const MicroKernels<T>* kernels;
  void operator()(Finished<T> tile, std::int64_t row, std::int64_t column) const {
    tile.to = data + row * ld + column;
    kernels->put(tile);
  }
};

/// Lists the panels of so many channels, `stride` elements apart, each of up to `most` vectors: panel_vectors() of
/// those left. c has them from `c` on, with room for whole vectors.
template <class T>
std::span<const Panel<T>> list_channels(std::int64_t channels, std::int64_t most, std::int64_t lanes, const T* panels,
                                        std::int64_t stride, T* c, Panel<T>* list) {
  Panel<T>* end = list;
  for (std::int64_t channel = 0; channel < channels; panels += stride) {
    const std::int64_t left = channels - channel, vectors = panel_vectors(divide_up(left, lanes), most);
    *end++ = {panels, c + channel, channel, std::min(vectors * lanes, left), vectors};
    channel += vectors * lanes;
  }
  return {list, end};
}

/// Lists packed panels `stride` elements apart, whose columns c has in `row` and onwards, row-major.
template <class T>
std::span<const Panel<T>> list_panels(const MicroKernels<T>& kernels, const T* packed, std::int64_t stride,
                                      std::int64_t columns, T* row, Panel<T>* list) {
  Panel<T>* end = list;
  for (std::int64_t j = 0; j < columns; j += kernels.width(), packed += stride) {
    const std::int64_t count = std::min<std::int64_t>(kernels.width(), columns - j);
    *end++ = {packed, count % kernels.lanes == 0 ? row + j : nullptr, j, count, divide_up(count, kernels.lanes)};
  }
  return {list, end};
}

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
