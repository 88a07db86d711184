#pragma once
// Matrix products in blocks: the loops between panels and the micro-kernels, and how work is partitioned for threads.
//
// c = a * b. Rows of a are read in place, row-major. b is in panels of up to MicroKernels::width() columns (NR):
// packed, `ldb` elements for each k, or in place. A block of b (KC x NC) is sized for the L2 cache. The rows of a that
// one register tile reads (MR x KC) stay in the L1 cache while they multiply every panel.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>

#include "lib/backends/eigen/micro_kernels/micro_kernels.h"
#include "lib/backends/eigen/runtime/non_temporal.h"
#include "lib/core/numbers/rounding.h"
#include "lib/core/units/scratch_allocator.h"

namespace lamina::eigen {

/// Up to MicroKernels::width() columns of a block.
template <class T>
struct Panel {
  const T* b;           ///< first row of the columns
  T* c;                 ///< place of the columns in row 0 of c, if c has room for whole vectors there; else null
  std::int64_t column;  ///< number of the first column
  std::int64_t count;
  std::int64_t vectors;  ///< vectors that hold `count` columns
};

/// Number of vectors of the next panel if `left` are left: at most `most`. If most + 1 are left and most is above 2, it
/// is most - 1: a last panel of one vector would be slow, because the product waits for its own sums.
constexpr std::int64_t panel_vectors(std::int64_t left, std::int64_t most) {
  return std::min(left, left == most + 1 && most > 2 ? most - 1 : most);
}

/// Rows of the first factor in memory.
template <class T>
struct RowsOfA {
  const T* data;
  std::int64_t ld;  ///< elements from row to row
  /// Elements of a run. A row consists of runs, whose starts are `run_pitch` elements apart.
  std::int64_t run = std::numeric_limits<std::int64_t>::max();
  std::int64_t run_pitch = 0;
};

/// Panels of the second factor.
template <class T>
struct PanelsOfB {
  std::span<const Panel<T>> list{};
  std::int64_t ld = 0;      ///< elements from row to row of a panel
  std::int64_t offset = 0;  ///< elements from a panel's first row to the block's first row
};

/// The place of the result. Panel::c has the places of its columns.
struct PlaceOfC {
  std::int64_t ld;          ///< elements from row to row
  std::int64_t offset = 0;  ///< elements from row 0 to the block's first row
  /// Whether tiles with a place in c are stored by non-temporal stores. The tiles must be whole lines of memory, and
  /// nothing may be added to them, also not by other blocks along k.
  bool non_temporal = false;
};

/// The block's position among the blocks that are summed along k.
template <class T>
struct AlongK {
  bool begins = true, ends = true;  ///< whether it is the first block; the last block
  /// Rows of `ld` elements that keep the sums of tiles without a place in c from block to block. Null: every block adds
  /// these tiles to c.
  T* sums = nullptr;
  std::int64_t ld = 0;
};

/// What a block prefetches from memory.
template <class T>
struct Ahead {
  bool a = false;                       ///< the next rows of a, while the first panel is multiplied
  bool b = false;                       ///< the next panel, while the first rows are multiplied
  bool c = false;                       ///< the place of the next tile
  std::span<const Panel<T>> next = {};  ///< panels of the next block; each strip of rows prefetches a share
  std::int64_t next_offset = 0;         ///< PanelsOfB::offset of the next block
};

/// One block of a product: rows of a times panels, all of them `depth` deep.
template <class T>
struct Block {
  const MicroKernels<T>* kernels;
  std::int64_t rows = 0, depth = 0;
  RowsOfA<T> a;
  PanelsOfB<T> b = {};
  PlaceOfC c;
  Epilogue<T> epilogue = {};  ///< `add`: the product is added to c
  AlongK<T> along = {};
  Ahead<T> ahead = {};
};

/// Whether the rows that a tile writes are whole lines of memory.
template <class T>
bool whole_lines(const Tile<T>& tile, const MicroKernels<T>& kernels) {
  constexpr std::int64_t line = line_bytes / static_cast<std::int64_t>(sizeof(T));
  return kernels.lanes == line && tile.ldc % line == 0 && reinterpret_cast<std::uintptr_t>(tile.c) % line_bytes == 0;
}

/// Elements of c from a panel's tile to the next tile: of the same rows or, after the last panel, of the next rows.
/// `column` is the tile's column in the block's sums. 0 if only one of both tiles has a place in c.
template <class T>
std::int64_t to_next_tile(const Block<T>& block, std::size_t index, std::int64_t column) {
  const MicroKernels<T>& kernels = *block.kernels;
  const bool last = index + 1 == block.b.list.size();
  const Panel<T>&panel = block.b.list[index], &next = block.b.list[last ? 0 : index + 1];
  if ((panel.c == nullptr) != (next.c == nullptr)) return 0;
  if (panel.c == nullptr) return last ? kernels.rows * block.along.ld - column : panel.vectors * kernels.lanes;
  return next.c - panel.c + (last ? kernels.rows * block.c.ld : 0);
}

/// Whether a vector is shorter than a cache line. Products with such vectors prefetch weights and outputs. With vectors
/// of a whole line these prefetches were not measured, and are left out.
template <class T>
bool narrow_vectors(const MicroKernels<T>& kernels) {
  return kernels.lanes * static_cast<std::int64_t>(sizeof(T)) < line_bytes;
}

/// Applies the function of an epilogue, if it has one, to finished results.
template <class T>
void activate(const Epilogue<T>& epilogue, T* c, std::int64_t ld, int rows, std::int64_t count) {
  if (epilogue.activation == nullptr) return;
  for (int i = 0; i < rows; ++i, c += ld) epilogue.activation->forward(c, c, count);
}

/// Stores a tile of finished sums. If a function follows, the results must lie side by side.
template <class T>
void store_finished(const OutputTile<T>& tile, const MicroKernels<T>& kernels) {
  kernels.store_tile(tile);
  activate(tile.epilogue, tile.to, tile.ldc, tile.rows, tile.count);
}

/// Multiplies a block. store(tile, row, column) stores a tile of finished sums that has no direct place in c. Fields
/// that all tiles share are set once: to set them for each tile would cost as much as many multiply-adds.
template <class T, class Store>
void multiply(const Block<T>& block, const Store& store) {
  const MicroKernels<T>& kernels = *block.kernels;
  const std::int64_t width = kernels.width();
  const bool begins = block.along.begins, ends = block.along.ends;
  const bool keeps = block.along.sums != nullptr && !(begins && ends);
  constexpr std::int64_t line = line_bytes / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t share = divide_up(line, divide_up(block.rows, kernels.rows));  // rows to prefetch, of every `line`
  alignas(line_bytes) T spill[most_tile_bytes / sizeof(T)];
  Tile<T> tile{.depth = block.depth,
               .a = block.a.data,
               .lda = block.a.ld,
               .ldb = block.b.ld,
               .c = spill,
               .ldc = width,
               .run = block.a.run,
               .run_pitch = block.a.run_pitch};
  const Epilogue<T>& whole = block.epilogue;
  const Bounds<T>* const bounds = ends ? whole.bounds : nullptr;
  const Activation<T>* const activation = ends ? whole.activation : nullptr;
  Epilogue<T> direct{.scale = whole.scale, .add = whole.add || !begins, .bounds = bounds, .activation = activation};
  if (begins) direct.bias = whole.bias;
  Epilogue<T> indirect{.scale = whole.scale, .add = keeps && !begins};
  Epilogue<T> stored{.add = whole.add || !(keeps || begins), .bounds = bounds, .activation = activation};
  if (keeps || begins) stored.bias = whole.bias;
  if (kernels.enter != nullptr) kernels.enter();
  std::int64_t first = 0;  // first row of a panel to prefetch, of every `line` rows
  for (std::int64_t i = 0; i < block.rows; i += kernels.rows, first += share) {
    const int rows = static_cast<int>(std::min<std::int64_t>(kernels.rows, block.rows - i));
    const int half = rows <= kernels.rows / 2 ? 1 : 0;
    tile.a = block.a.data + i * block.a.ld;
    tile.rows = rows;
    std::int64_t column = 0;
    for (std::size_t index = 0; index < block.b.list.size(); ++index) {
      const Panel<T>& panel = block.b.list[index];
      tile.b = panel.b + block.b.offset;
      bool non_temporal = false;
      if (panel.c != nullptr) {
        tile.c = panel.c + block.c.offset + i * block.c.ld;
        tile.ldc = block.c.ld;
        tile.epilogue = &direct;
        non_temporal =
            block.c.non_temporal && !direct.add && activation == nullptr && ends && whole_lines(tile, kernels);
      } else {
        tile.c = keeps ? block.along.sums + i * block.along.ld + column : spill;
        tile.ldc = keeps ? block.along.ld : width;
        tile.epilogue = &indirect;
      }
      Prefetch<T>& prefetch = tile.prefetch;
      prefetch.a = block.ahead.a && index == 0 ? kernels.rows * block.a.ld : 0;
      prefetch.c = block.ahead.c && (panel.c != nullptr || keeps) ? to_next_tile(block, index, column) : 0;
      prefetch.panel = nullptr;
      if (block.ahead.b && i == 0 && index + 1 < block.b.list.size()) {
        prefetch.panel = block.b.list[index + 1].b + block.b.offset;
        prefetch.first = 0;
        prefetch.rows = static_cast<int>(line);
      } else if (index < block.ahead.next.size() && first < line) {
        prefetch.panel = block.ahead.next[index].b + block.ahead.next_offset;
        prefetch.first = static_cast<int>(first);
        prefetch.rows = static_cast<int>(std::min(share, line - first));
      }
      column += panel.vectors * kernels.lanes;
      (non_temporal ? kernels.non_temporal_tile : kernels.tile)[half][panel.vectors - 1](tile);
      if (panel.c != nullptr) {
        activate(direct, tile.c, tile.ldc, rows, panel.count);
        continue;
      }
      if (keeps && !ends) continue;
      OutputTile<T> its{.ldc = block.c.ld, .from = tile.c, .ldf = tile.ldc, .rows = rows, .count = panel.count};
      its.epilogue = stored;
      store(its, i, panel.column);
    }
    // Advanced in place: the loads of a copy would wait for the stores of the tiles.
    for (Epilogue<T>* const epilogue : {&direct, &indirect, &stored}) epilogue->advance(kernels.rows);
  }
  if (kernels.leave != nullptr) kernels.leave();
}

/// Stores tiles in a row-major c: element (i, j) at data[i * ld + j].
template <class T>
struct RowMajor {
  T* data;
  std::int64_t ld;
  const MicroKernels<T>* kernels;
  void operator()(OutputTile<T> tile, std::int64_t row, std::int64_t column) const {
    tile.to = data + row * ld + column;
    store_finished(tile, *kernels);
  }
};

/// Lists the panels of `channels` channels. Panels are `stride` elements apart and have panel_vectors() vectors. Their
/// columns lie in c from `c` on, with room for whole vectors.
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

/// Lists packed panels, `stride` elements apart. Their columns lie in a row-major c, from `row` on.
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

/// The partition of a product for threads: `columns` x `rows` parts with separate sums.
struct Partition {
  int columns = 1, rows = 1;
  int parts() const { return columns * rows; }
};

/// The divisor d of `threads` with the least cost(d, threads / d); the smallest such d.
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

/// The partition whose largest part is smallest. Each run in `columns` is divided separately, in multiples of `grain`.
/// Each part packs the columns that it reads, even if other parts read them too; the cost includes this.
inline Partition partition(std::initializer_list<std::int64_t> columns, std::int64_t rows, int threads,
                           std::int64_t grain, int tile_rows) {
  constexpr std::int64_t packing_rows = 8;  // cost of packing an element, in rows that use it
  const int row_parts = cheapest_divisor(threads, [&](int of_rows, int of_columns) {
    std::int64_t widest = 0;
    for (const std::int64_t count : columns) widest += divide_up(divide_up(count, grain), of_columns) * grain;
    const std::int64_t tallest = divide_up(divide_up(rows, tile_rows), of_rows) * tile_rows;
    return widest * (tallest + packing_rows);
  });
  return {threads / row_parts, row_parts};
}

/// The indices [first, last).
struct IndexRange {
  std::int64_t first, last;
};

/// The share of `part` in [0, count), in units of `grain`; an empty share has first = last.
constexpr IndexRange share_of(std::int64_t count, std::int64_t grain, int part, int parts) {
  const std::int64_t units = divide_up(count, grain);
  return {std::min(count, units * part / parts * grain), std::min(count, units * (part + 1) / parts * grain)};
}

}  // namespace lamina::eigen
