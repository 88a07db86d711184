#pragma once
// Matrix products in blocks: the loops between panels and the micro-kernels, and how work is partitioned for threads.
//
// c = a * b. Rows of a are read in place, row-major. b is in panels of up to MicroKernels::width() columns (NR):
// packed, `ldb` elements for each k, or in place. A block of b (KC x NC) is sized for the second-level cache. The rows
// of a that one register tile reads (MR x KC) stay in the first-level cache while they multiply every panel.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "lib/backends/eigen/micro_kernels/micro_kernels.h"
#include "lib/backends/eigen/runtime/non_temporal.h"
#include "lib/core/numbers/rounding.h"
#include "lib/core/units/scratch_allocator.h"

namespace lamina::eigen {

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
  std::int64_t run_pitch = 0;                                   ///< from one's start to the next one's
  std::span<const Panel<T>> panels;
  std::int64_t b_offset = 0;  ///< elements from a panel's first row to the block's
  std::int64_t ldb;           ///< elements from row to row of a panel
  std::int64_t c_offset = 0;  ///< elements from row 0 of c to the block's first
  std::int64_t ldc;           ///< elements from row to row of c
  Epilogue<T> epilogue = {};  ///< its `add`: to what c held before the product
  bool begins = true;         ///< the first block of its sums along k
  bool ends = true;           ///< and the last
  T* sums = nullptr;          ///< rows x sums_ld: keeps, from block to block, the tiles that c has no direct place for;
  std::int64_t sums_ld = 0;   ///< without it they are added to c by every block
  bool prefetch_a = false;  ///< a comes from memory: while the first panel is multiplied, the next rows are prefetched
  bool prefetch_b = false;  ///< so do panels: while the first rows multiply one, the next one is prefetched
  bool prefetch_c = false;  ///< so does c: each tile prefetches the place of the next one
  /// c is stored by non-temporal stores where nothing is added to it (also by earlier blocks along k), where it has a
  /// direct place whose rows are whole lines of memory, and where vectors are.
  bool non_temporal = false;
  std::span<const Panel<T>> next =
      {};                        ///< panels of the next block, if they come from memory: rows prefetch a share each
  std::int64_t next_offset = 0;  ///< as b_offset
};

/// Whether the rows that a tile writes are whole lines of memory.
template <class T>
bool whole_lines(const Tile<T>& tile, const MicroKernels<T>& kernels) {
  constexpr std::int64_t line = line_bytes / static_cast<std::int64_t>(sizeof(T));
  return kernels.lanes == line && tile.ldc % line == 0 && reinterpret_cast<std::uintptr_t>(tile.c) % line_bytes == 0;
}

/// Elements of c from the tile of a panel to the next one: of the same rows or, after the last panel, of the next ones.
/// `column` is that of the tile in the block's sums. 0 where the next one is elsewhere.
template <class T>
std::int64_t to_next_tile(const Block<T>& block, std::size_t index, std::int64_t column) {
  const MicroKernels<T>& kernels = *block.kernels;
  const bool last = index + 1 == block.panels.size();
  const Panel<T>&panel = block.panels[index], &next = block.panels[last ? 0 : index + 1];
  if ((panel.c == nullptr) != (next.c == nullptr)) return 0;
  if (panel.c == nullptr) return last ? kernels.rows * block.sums_ld - column : panel.vectors * kernels.lanes;
  return next.c - panel.c + (last ? kernels.rows * block.ldc : 0);
}

/// Whether a vector is shorter than a cache line. Products with such vectors prefetch weights and outputs.
/// With longer vectors it was not measured, and nothing is prefetched.
template <class T>
bool narrow_vectors(const MicroKernels<T>& kernels) {
  return kernels.lanes * static_cast<std::int64_t>(sizeof(T)) < line_bytes;
}

/// Multiplies a block. store(tile, row, column) stores a tile of finished sums that has no direct place in c. What all
/// tiles share is set once: for tiles with few terms, setting it each time costs as much as many terms.
template <class T, class Store>
void multiply(const Block<T>& block, const Store& store) {
  const MicroKernels<T>& kernels = *block.kernels;
  const std::int64_t width = kernels.width();
  const bool keeps = block.sums != nullptr && !(block.begins && block.ends);
  constexpr std::int64_t line = line_bytes / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t share = divide_up(line, divide_up(block.rows, kernels.rows));  // of every `line` rows of a panel
  alignas(line_bytes) T spill[2048 / sizeof(T)];
  Tile<T> tile{.depth = block.depth,
               .a = block.a,
               .lda = block.lda,
               .rows = 0,
               .b = nullptr,
               .ldb = block.ldb,
               .c = spill,
               .ldc = width,
               .run = block.run,
               .run_pitch = block.run_pitch};
  std::int64_t first = 0;  // that these rows prefetch, of every `line` rows of a panel
  for (std::int64_t i = 0; i < block.rows; i += kernels.rows, first += share) {
    const int rows = static_cast<int>(std::min<std::int64_t>(kernels.rows, block.rows - i));
    const int half = rows <= kernels.rows / 2 ? 1 : 0;
    const Epilogue<T> of_rows = block.epilogue.from(i);
    const Epilogue<T> direct{.scale = of_rows.scale,
                             .bias = block.begins ? of_rows.bias : nullptr,
                             .add = of_rows.add || !block.begins,
                             .relu = of_rows.relu && block.ends};
    const Epilogue<T> indirect{.scale = of_rows.scale, .add = keeps && !block.begins};
    tile.a = block.a + i * block.lda;
    tile.rows = rows;
    std::int64_t column = 0;
    for (std::size_t index = 0; index < block.panels.size(); ++index) {
      const Panel<T>& panel = block.panels[index];
      tile.b = panel.b + block.b_offset;
      bool non_temporal = false;
      if (panel.c != nullptr) {
        tile.c = panel.c + block.c_offset + i * block.ldc;
        tile.ldc = block.ldc;
        tile.epilogue = direct;
        non_temporal = block.non_temporal && !direct.add && block.ends && whole_lines(tile, kernels);
      } else {
        tile.c = keeps ? block.sums + i * block.sums_ld + column : spill;
        tile.ldc = keeps ? block.sums_ld : width;
        tile.epilogue = indirect;
      }
      Prefetch<T>& prefetch = tile.prefetch;
      prefetch.a = block.prefetch_a && index == 0 ? kernels.rows * block.lda : 0;
      prefetch.c = block.prefetch_c && (panel.c != nullptr || keeps) ? to_next_tile(block, index, column) : 0;
      prefetch.panel = nullptr;
      if (block.prefetch_b && i == 0 && index + 1 < block.panels.size()) {
        prefetch.panel = block.panels[index + 1].b + block.b_offset;
        prefetch.first = 0;
        prefetch.rows = static_cast<int>(line);
      } else if (index < block.next.size() && first < line) {
        prefetch.panel = block.next[index].b + block.next_offset;
        prefetch.first = static_cast<int>(first);
        prefetch.rows = static_cast<int>(std::min(share, line - first));
      }
      column += panel.vectors * kernels.lanes;
      (non_temporal ? kernels.non_temporal_tile : kernels.tile)[half][panel.vectors - 1](tile);
      if (panel.c != nullptr || (keeps && !block.ends)) continue;
      store(OutputTile<T>{.to = nullptr,
                          .ldc = block.ldc,
                          .step = 1,
                          .from = tile.c,
                          .ldf = tile.ldc,
                          .rows = rows,
                          .count = panel.count,
                          .epilogue = {.bias = keeps || block.begins ? of_rows.bias : nullptr,
                                       .add = of_rows.add || !(keeps || block.begins),
                                       .relu = of_rows.relu && block.ends}},
            i, panel.column);
    }
  }
}

/// Stores tiles in a row-major c: element (i, j) at data[i * ld + j].
template <class T>
struct RowMajor {
  T* data;
  std::int64_t ld;
  const MicroKernels<T>* kernels;
  void operator()(OutputTile<T> tile, std::int64_t row, std::int64_t column) const {
    tile.to = data + row * ld + column;
    kernels->store_tile(tile);
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

/// How a product is partitioned for threads: `columns` x `rows` parts with separate sums.
struct Partition {
  int columns = 1, rows = 1;
  int parts() const { return columns * rows; }
};

/// The divisor d of `threads` of least cost(d, threads / d), the smallest of equals.
template <class Cost>
int cheapest_divisor(int threads, const Cost& cost) {
  int best = 1;
  auto best_cost = cost(1, threads);
  for (int d = 2; d <= threads; ++d) {
    if (threads % d != 0) continue;
    const auto here = cost(d, threads / d);
    if (!(here < best_cost)) continue;
    best = d;
    best_cost = here;
  }
  return best;
}

/// The partition whose largest part is smallest. Its cost includes that parts which share columns pack them twice.
inline Partition partition(std::int64_t columns, std::int64_t rows, int threads, int lanes, int tile_rows) {
  constexpr std::int64_t packing_rows = 8;  // packing an element costs about as much as using it in so many rows
  const int row_parts = cheapest_divisor(threads, [&](int of_rows, int of_columns) {
    const std::int64_t widest = divide_up(divide_up(columns, lanes), of_columns) * lanes;
    const std::int64_t tallest = divide_up(divide_up(rows, tile_rows), of_rows) * tile_rows;
    return widest * (tallest + packing_rows);
  });
  return {threads / row_parts, row_parts};
}

/// The indices [first, last).
struct IndexRange {
  std::int64_t first, last;
};

/// The share of [0, count) that is this part's, in units of `grain`; an empty one has first = last.
constexpr IndexRange share_of(std::int64_t count, std::int64_t grain, int part, int parts) {
  const std::int64_t units = divide_up(count, grain);
  return {std::min(count, units * part / parts * grain), std::min(count, units * (part + 1) / parts * grain)};
}

}  // namespace lamina::eigen
