#pragma once
// Weights times the matrix of columns: the product of a convolution's forward pass and its data gradient. Columns that
// are the image itself (1x1 with stride 1) may be read in place (columns_in_place), up to the last whole vector; others
// are packed. If all images together leave at most half a vector of columns, these few are packed along k.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "columns.h"
#include "gemm.h"
#include "grid_output.h"

namespace lamina::eigen {

/// One product a * columns, in blocks and partitioned for threads. Holds no memory.
template <class T>
class ColumnProduct {
 public:
  ColumnProduct(Columns columns, std::int64_t rows, int threads, const MicroKernels<T>& kernels)
      : kernels_(&kernels), depth_(columns.depth()), rows_(rows), grain_(grain_of(columns.count(), kernels.lanes)) {
    block_depth_ = divide_depth(columns.channels(), columns.taps()).block;
    const std::int64_t grid = columns.grid(), body = columns_in_place(columns, rows, kernels);
    if (body > 0) {
      sections_.push_back({columns.part(body), 0, true});
      if (body < grid) {
        Columns rest = columns.part(grid - body);
        const bool few = kernels.few_columns != nullptr && rest.count() <= kernels.lanes / 2;
        sections_.push_back({std::move(rest), body, false, few});
      }
    } else {
      sections_.push_back({std::move(columns), 0, false});
    }
    const bool packs_rest = sections_.size() == 2 && !sections_[1].few;
    partition_ = partition({sections_[0].columns.count(), packs_rest ? sections_[1].columns.count() : 0}, rows, threads,
                           grain_, kernels.rows);
    for (Section& section : sections_) section.block_columns = block_columns(section);
    workspace_bytes_ = allocated_bytes([&](auto& scratch) { allocate(scratch); });
  }

  /// The most roundings of a term in a sum over `channels` channels of `taps` terms each: one for the term and each
  /// later term of its block, and one for each later block.
  static std::int64_t roundings(std::int64_t channels, std::int64_t taps) {
    const Depths depths = divide_depth(channels, taps);
    return depths.block + depths.blocks - 1;
  }

  std::int64_t depth() const { return depth_; }
  std::int64_t rows() const { return rows_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }  ///< workspace of one part
  int parts() const { return partition_.parts(); }

  struct Operands {
    const T* a;        ///< rows() x depth()
    std::int64_t lda;  ///< elements from row to row
    Source<T> source;
    GridOutput<T> output;
    Epilogue<T> epilogue = {};
    bool non_temporal = false;                              ///< see PlaceOfC::non_temporal
    IndexRange images{0, std::numeric_limits<int>::max()};  ///< images whose columns are wanted
  };
  /// Computes this part's share. Parts may run at the same time, each with a separate workspace.
  void run(int part, const Operands& operands, void* workspace) const {
    if (part >= partition_.parts()) return;
    const IndexRange rows = share_of(rows_, kernels_->rows, part / partition_.columns, partition_.rows);
    if (rows.first == rows.last) return;
    ScratchAllocator scratch(workspace);
    GridOutput<T> output = operands.output;
    output.data += rows.first * output.plane;
    const Work work{operands, output, rows, allocate(scratch)};
    const bool narrow = narrow_vectors(*kernels_);
    for (const Section& section : sections_) {
      const Columns& columns = section.columns;
      IndexRange share = share_of(columns.count(), grain_, part % partition_.columns, partition_.columns);
      share.first = std::max(share.first, operands.images.first * columns.grid());
      share.last = std::max(share.first, std::min(share.last, operands.images.last * columns.grid()));
      if (section.few) {
        run_few(section, work, share);
        continue;
      }
      const GridPlace<T> place{columns.grid(), section.offset, work.output};
      const auto store = [&](OutputTile<T> tile, std::int64_t row, std::int64_t column) {
        place.store(tile, row, column, *kernels_);
      };
      // Weights of many taps exceed the L2 cache, which is often small where vectors are narrow: `a` is prefetched.
      Block<T> block{
          .kernels = kernels_,
          .rows = rows.last - rows.first,
          .a = {nullptr, operands.lda},
          .b = {.ld = section.in_place ? columns.plane() : kernels_->width()},
          .c = {.ld = work.output.plane, .non_temporal = operands.non_temporal},
          .epilogue = operands.epilogue.from(rows.first),
          .along = {.sums = block_depth_ < depth_ ? work.buffers.sums : nullptr, .ld = section.block_columns},
          .ahead = {.a = columns.staged() || narrow, .c = narrow}};
      ColumnRange range = range_from(section, share.first, share.last);
      std::span<const Panel<T>> next = list_panels(section, range, work, work.buffers.lists[0]);
      for (int turn = 1; range.count > 0; turn = 1 - turn) {
        const ColumnRange next_range = range_from(section, range.first + range.count, share.last);
        const std::span<const Panel<T>> panels = block.b.list = next;
        next = list_panels(section, next_range, work, work.buffers.lists[turn]);
        const std::int64_t segments =
            section.in_place ? 0
                             : columns.segments(range, widths_of(range, panels), panel_stride(), operands.source.pitch,
                                                kernels_->lanes, work.buffers.segments);
        for (std::int64_t k = 0; k < depth_; k += block_depth_) {
          block.a.data = operands.a + rows.first * operands.lda + k;
          block.depth = std::min(block_depth_, depth_ - k);
          block.along.begins = k == 0;
          block.along.ends = k + block.depth == depth_;
          if (section.in_place) {
            block.b.offset = k * columns.plane();
            block.ahead.b = k == 0 && range.first == share.first;
            block.ahead.next = block.along.ends ? next : panels;
            block.ahead.next_offset = block.along.ends ? 0 : (k + block.depth) * columns.plane();
          } else {
            pack(section, range, panels, work, k, block.depth, segments);
          }
          multiply(block, store);
        }
        range = next_range;
      }
    }
    if (operands.non_temporal) non_temporal_fence();
  }

 private:
  static constexpr std::int64_t block_row_bytes = 2048;          // one row of a: eight rows fill a third of an L1 cache
  static constexpr std::int64_t block_panel_bytes = 512 * 1024;  // packed columns of a block: half of an L2 cache
  static constexpr std::int64_t in_place_bytes = 256 * 1024;     // a block read in place; the next one is prefetched
  static constexpr std::int64_t packing_bytes = 16 * 1024;       // copied channels: half of an L1 cache
  static constexpr std::int64_t planes_ahead = 2;                // planes from the copied to the prefetched plane

  /// The blocks of a sum along k. They are about equally deep, and have whole channels unless one channel is too deep.
  struct Depths {
    std::int64_t block, blocks;
  };
  static Depths divide_depth(std::int64_t channels, std::int64_t taps) {
    const std::int64_t target = block_row_bytes / static_cast<std::int64_t>(sizeof(T));
    const std::int64_t unit = taps <= 2 * target ? taps : 1;
    const std::int64_t units = channels * taps / unit;
    const std::int64_t in_block = divide_up(units, divide_up(units, std::max<std::int64_t>(1, target / unit)));
    return {in_block * unit, divide_up(units, in_block)};
  }

  /// Many columns are divided into parts of whole cache lines: two threads that write to one line wait for each other.
  /// Few columns are divided into parts of vectors, which divide more evenly.
  static std::int64_t grain_of(std::int64_t columns, std::int64_t lanes) {
    const std::int64_t line = std::max(lanes, line_bytes / static_cast<std::int64_t>(sizeof(T)));
    return columns >= 16 * line ? line : lanes;
  }

  /// Number of columns of an image that are read in place, in whole vectors. It is 0 in five cases:
  /// - columns are not the image;
  /// - the first factor has many rows: packed panels, whose rows lie side by side, are then faster;
  /// - rows are whole pages apart and would share few sets of a cache;
  /// - a panel would have one vector, which is slow;
  /// - vectors are short: rows would end within cache lines, which the next panel reads again.
  static std::int64_t columns_in_place(const Columns& columns, std::int64_t rows, const MicroKernels<T>& kernels) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t lanes = kernels.lanes, body = columns.grid() / lanes * lanes;
    if (columns.staged() || (rows >= 256 && columns.count() >= 4 * kernels.width())) return 0;
    const bool whole_pages = columns.plane() * size % 4096 == 0;
    return lanes * size == line_bytes && body >= 2 * lanes && !whole_pages ? body : 0;
  }

  /// The columns of every image that are read in place, or the columns that are packed.
  struct Section {
    Columns columns;
    std::int64_t offset;  // first column in an image
    bool in_place;        // whether panels are columns of the source itself; offset is then 0
    bool few = false;     // whether it has at most half a vector of columns, packed along k
    std::int64_t block_columns = 0;
  };
  struct Buffers {
    T* panels;
    T* staged;             // copy of some channels
    std::int64_t* starts;  // start of each row (channel, tap) in `staged`
    T* sums;               // sums that wait for further blocks
    Segment* segments;
    Panel<T>* lists[2];  // panels of a range, and of the next range
  };
  struct Work {  // the work of one part
    const Operands& operands;
    GridOutput<T> output;  // output of these rows
    IndexRange rows;
    Buffers buffers;
  };

  Buffers allocate(ScratchAllocator& scratch) const {
    const std::int64_t width = kernels_->width(), lanes = kernels_->lanes;
    std::int64_t packed = 0, staged = 0, starts = 0, widest = 0, segments = 0, panels = 0;
    for (const Section& section : sections_) {
      const std::int64_t block = section.block_columns;
      widest = std::max(widest, round_up(block, lanes));
      // Every image of a block may end with separate panels.
      panels = std::max(panels, block / width + 1 + (section.in_place ? 2 * (block / section.columns.grid() + 2) : 0));
      if (section.in_place) continue;
      packed = std::max(
          packed, section.few ? section.columns.count() * round_up(depth_, lanes) : block / width * panel_stride());
      if (section.few) continue;
      const std::int64_t channels = staged_channels(section);
      staged = std::max(staged, section.columns.staged_bound(block, kernels_->lanes) * channels);
      starts = std::max(starts, section.columns.taps() * channels);
      segments = std::max(segments, section.columns.segment_bound(block, width));
    }
    Buffers buffers;
    buffers.panels = scratch.take<T>(packed);
    buffers.staged = scratch.take<T>(staged + width);
    buffers.starts = scratch.take<std::int64_t>(starts);
    buffers.sums = scratch.take<T>(block_depth_ < depth_ ? tallest() * widest : 0);
    buffers.segments = scratch.take<Segment>(segments);
    for (Panel<T>*& list : buffers.lists) list = scratch.take<Panel<T>>(panels);
    return buffers;
  }

  /// Number of rows of the largest part.
  std::int64_t tallest() const { return divide_up(divide_up(rows_, kernels_->rows), partition_.rows) * kernels_->rows; }

  std::int64_t block_columns(const Section& section) const {
    const std::int64_t width = kernels_->width(), grid = section.columns.grid();
    const std::int64_t elements =
        (section.in_place ? in_place_bytes : block_panel_bytes) / static_cast<std::int64_t>(sizeof(T));
    const std::int64_t panel = narrow_vectors(*kernels_) ? panel_stride() : block_depth_ * width;
    const std::int64_t fit = std::clamp<std::int64_t>(elements / panel, 2, 64) * width;
    const std::int64_t part = divide_up(divide_up(section.columns.count(), grain_), partition_.columns) * grain_;
    if (section.in_place && grid <= fit) return std::min(part, fit / grid * grid);  // whole images
    const std::int64_t share = section.in_place ? std::min(part, grid) : part;
    return round_up(divide_up(share, divide_up(share, fit)), width);
  }

  /// The number of channels that are copied at once: they stay in the L1 cache until they are packed.
  std::int64_t staged_channels(const Section& section) const {
    const Columns& columns = section.columns;
    const std::int64_t bytes =
        columns.staged_bound(section.block_columns, kernels_->lanes) * static_cast<std::int64_t>(sizeof(T));
    return bytes == 0 ? 0 : std::clamp<std::int64_t>(packing_bytes / bytes, 1, columns.channels());
  }

  /// Elements from panel to panel. Packing may write up to a row after a panel.
  std::int64_t panel_stride() const { return (block_depth_ + 1) * kernels_->width(); }

  /// Dot products along k, for columns that fill at most half a vector.
  void run_few(const Section& section, const Work& work, IndexRange share) const {
    if (share.first == share.last) return;
    const Columns& columns = section.columns;
    const std::int64_t grid = columns.grid(), ld = round_up(depth_, kernels_->lanes), count = share.last - share.first;
    for (std::int64_t j = 0; j < count; ++j) {
      const Source<T>& source = work.operands.source;
      const std::int64_t image = (share.first + j) / grid, at = (share.first + j) % grid;
      const T* const from = source.data + image * source.pitch + section.offset + at;
      T* const to = work.buffers.panels + j * ld;
      for (std::int64_t k = 0; k < depth_; ++k) to[k] = from[k * columns.plane()];
      std::fill(to + depth_, to + ld, T{0});
    }
    const GridPlace<T> place{grid, section.offset, work.output};
    const IndexRange rows = work.rows;
    T sums[2048 / sizeof(T)];
    for (std::int64_t i = 0; i < rows.last - rows.first; i += kernels_->rows) {
      const Epilogue<T> epilogue = work.operands.epilogue.from(rows.first + i);
      const std::int64_t strip = std::min<std::int64_t>(kernels_->rows, rows.last - rows.first - i);
      kernels_->few_columns({.to = sums,
                             .ldt = count,
                             .a = work.operands.a + (rows.first + i) * work.operands.lda,
                             .lda = work.operands.lda,
                             .rows = strip,
                             .columns = work.buffers.panels,
                             .ld = ld,
                             .count = count,
                             .depth = depth_,
                             .scale = epilogue.scale});
      place.store({.ldc = work.output.plane,
                   .from = sums,
                   .ldf = count,
                   .rows = static_cast<int>(strip),
                   .count = count,
                   .epilogue = epilogue},
                  i, share.first, *kernels_);
    }
  }

  /// The block of columns that begins at `first`, at most up to `last`.
  ColumnRange range_from(const Section& section, std::int64_t first, std::int64_t last) const {
    const std::int64_t grid = section.columns.grid(), block = section.block_columns;
    const bool within_image = section.in_place && block < grid;
    return {first, std::min(within_image ? std::min(block, grid - first % grid) : block, last - first)};
  }

  std::span<const Panel<T>> list_panels(const Section& section, ColumnRange range, const Work& work,
                                        Panel<T>* list) const {
    const std::int64_t grid = section.columns.grid(), lanes = kernels_->lanes, last = range.first + range.count;
    const GridPlace<T> place{grid, section.offset, work.output};
    const Source<T>& source = work.operands.source;
    Panel<T>* end = list;
    const T* packed = work.buffers.panels;
    for (std::int64_t column = range.first; column < last; column = end[-1].column + end[-1].count) {
      if (section.in_place) {
        const std::int64_t image = column / grid, at = column - image * grid;
        const std::int64_t left = std::min(grid - at, last - column) / lanes;
        const std::int64_t count = panel_vectors(left, kernels_->vectors) * lanes;
        *end++ = {source.data + image * source.pitch + at, place.direct(column, count), column, count, count / lanes};
      } else {
        const std::int64_t left = last - column;
        const std::int64_t count = std::min(left, panel_vectors(divide_up(left, lanes), kernels_->vectors) * lanes);
        *end++ = {packed, count % lanes == 0 ? place.direct(column, count) : nullptr, column, count,
                  divide_up(count, lanes)};
        packed += panel_stride();
      }
    }
    return {list, end};
  }

  PanelWidths widths_of(ColumnRange range, std::span<const Panel<T>> panels) const {
    const auto narrow =
        std::find_if(panels.begin(), panels.end(), [&](const Panel<T>& p) { return p.vectors < kernels_->vectors; });
    if (narrow == panels.end()) return {kernels_->width()};
    return {kernels_->width(), narrow->column - range.first, narrow->vectors * kernels_->lanes};
  }

  void pack(const Section& section, ColumnRange range, std::span<const Panel<T>> panels, const Work& work,
            std::int64_t first, std::int64_t depth, std::int64_t segments) const {
    const Columns& columns = section.columns;
    const Buffers& buffers = work.buffers;
    const std::int64_t width = kernels_->width();
    const Panel<T>& last = panels.back();
    if (last.count % kernels_->lanes != 0) {  // the product also reads columns that no segment fills
      T* const to = buffers.panels + static_cast<std::int64_t>(panels.size() - 1) * panel_stride();
      for (std::int64_t k = 0; k < depth; ++k)
        std::fill(to + k * width + last.count, to + k * width + last.vectors * kernels_->lanes, T{0});
    }
    if (columns.staged()) return pack_staged(section, range, work, first, depth, segments);
    const T* const from = work.operands.source.data + section.offset + first * columns.plane();
    for (std::int64_t k = 0; k < depth; ++k) {
      kernels_->copy_exact(buffers.panels + k * width, from + k * columns.plane(), buffers.segments, segments,
                           planes_ahead * columns.plane());
    }
  }

  /// Packs some channels at a time.
  void pack_staged(const Section& section, ColumnRange range, const Work& work, std::int64_t first, std::int64_t depth,
                   std::int64_t segments) const {
    const Columns& columns = section.columns;
    const Buffers& buffers = work.buffers;
    const std::int64_t width = kernels_->width(), taps = columns.taps(), end = first + depth;
    const std::int64_t size = columns.staged_size(range, kernels_->lanes), rows = columns.staged_rows(range);
    const std::int64_t channels = staged_channels(section);
    for (std::int64_t i = 0; i < channels * taps; ++i)
      buffers.starts[i] = columns.start(i / taps, i % taps, size, rows, kernels_->lanes);
    for (std::int64_t k = first; k < end;) {
      const std::int64_t channel = k / taps, tap = k % taps, count = std::min(channels * taps - tap, end - k);
      const std::int64_t last_channel = (k + count - 1) / taps + 1;
      columns.stage(range, work.operands.source, channel, last_channel, *kernels_, buffers.staged);
      T* const staged_end = buffers.staged + (last_channel - channel) * size;
      // Packing also reads elements behind the last segment, which must be numbers.
      std::fill(staged_end, staged_end + width, T{0});
      kernels_->pack({.to = buffers.panels + (k - first) * width,
                      .ld = width,
                      .from = buffers.staged,
                      .starts = buffers.starts + tap,
                      .rows = count,
                      .segments = buffers.segments,
                      .count = segments});
      k += count;
    }
  }

  const MicroKernels<T>* kernels_;
  std::int64_t depth_, rows_;
  std::int64_t grain_;  // number of columns that every part is a multiple of
  Partition partition_;
  std::vector<Section> sections_;
  std::int64_t block_depth_;
  std::size_t workspace_bytes_;
};

}  // namespace lamina::eigen
