// Weights times the matrix of columns, in blocks that stay in the cache.

#include "column_product.h"

#include <algorithm>
#include <utility>

namespace lamina::eigen {
namespace {

constexpr std::int64_t panel_bytes = 512 * 1024;  // of packed columns: half of a second-level cache

/// Columns of one range, in the layout of the output.
template <class T>
struct GridPlace {
  const Columns* columns;
  GridOutput<T> output;
  ColumnRange range;
  std::int64_t ld;  // plane

  T* direct(std::int64_t column, std::int64_t count) const {
    const std::int64_t first = range.first + column, grid = columns->grid();
    const std::int64_t image = first / grid, at = first - image * grid;
    if (output.step != 1 || at + count > grid) return nullptr;
    if (output.row_pitch == output.row_length) return output.data + image * output.pitch + at;
    const std::int64_t row = at / output.row_length, q = at - row * output.row_length;
    if (q + count > output.row_length) return nullptr;
    return output.data + image * output.pitch + row * output.row_pitch + q;
  }

  void scatter(Finished<T> tile, std::int64_t row, std::int64_t column, const MicroKernels<T>& kernels) const {
    const std::int64_t grid = columns->grid(), length = output.row_length, count = tile.count;
    const bool whole = output.step == 1 && output.row_pitch == length;  // an image's columns are one run
    tile.step = output.step;
    for (std::int64_t j = 0; j < count; j += tile.count, tile.from += tile.count) {
      const std::int64_t at = range.first + column + j;
      const std::int64_t image = at / grid, within = at - image * grid;
      const std::int64_t p = within / length, q = within - p * length;
      tile.count = std::min(whole ? grid - within : length - q, count - j);
      tile.to = output.data + image * output.pitch + row * output.plane + p * output.row_pitch + q * output.step;
      kernels.put(tile);
    }
  }
};

}  // namespace

template <class T>
ColumnProduct<T>::ColumnProduct(Columns columns, std::int64_t rows, int threads, const MicroKernels<T>& kernels)
    : kernels_(&kernels),
      columns_(std::move(columns)),
      rows_(rows),
      partition_(partition(columns_.count(), rows, threads, kernels.lanes, kernels.rows)),
      in_place_(!columns_.staged() && columns_.grid() % kernels.lanes == 0) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t taps = columns_.taps(), depth = columns_.depth();
  const std::int64_t target = column_strip_bytes / size;
  // Whole channels in a block, unless one alone is too deep; blocks of even depth.
  const std::int64_t unit = taps <= 2 * target ? taps : 1;
  const std::int64_t units = depth / unit;
  const std::int64_t blocks = divide_up(units, std::max<std::int64_t>(1, target / unit));
  block_depth_ = divide_up(units, blocks) * unit;
  block_channels_ = unit == taps ? block_depth_ / taps : std::min(depth / taps, block_depth_ / taps + 2);
  const std::int64_t width = kernels.width();
  const std::int64_t fit = std::clamp<std::int64_t>(panel_bytes / size / block_depth_ / width, 2, 64) * width;
  const std::int64_t part = divide_up(divide_up(columns_.count(), kernels.lanes), partition_.columns) * kernels.lanes;
  const std::int64_t share = in_place_ ? std::min(part, columns_.grid()) : part;
  block_columns_ = round_up(divide_up(share, divide_up(share, fit)), width);
  Carver counter;
  carve(counter);
  workspace_bytes_ = counter.used_bytes();
}

template <class T>
auto ColumnProduct<T>::carve(Carver& carver) const -> Buffers {
  const std::int64_t width = kernels_->width(), lanes = kernels_->lanes;
  Buffers buffers;
  buffers.panels = carver.take<T>(in_place_ ? 0 : block_columns_ / width * (block_depth_ * width + lanes));
  buffers.staged = carver.take<T>(columns_.staged_bound(block_columns_, kernels_->lanes) * block_channels_ + lanes);
  // Sums that wait for further blocks; as many rows as the largest part has.
  const std::int64_t tallest = divide_up(divide_up(rows_, kernels_->rows), partition_.rows) * kernels_->rows;
  buffers.sums = carver.take<T>(block_depth_ < columns_.depth() ? tallest * block_columns_ : 0);
  buffers.segments = carver.take<Segment>(columns_.segment_bound(block_columns_, width));
  return buffers;
}

template <class T>
void ColumnProduct<T>::pack(ColumnRange range, const Operands& operands, std::int64_t first, std::int64_t depth,
                            const Buffers& buffers, std::int64_t segments) const {
  const std::int64_t width = kernels_->width(), taps = columns_.taps();
  const std::int64_t first_channel = first / taps;
  const T* from = operands.source.data;
  std::int64_t size = 0, rows = 0, origin = 0;
  if (columns_.staged()) {
    const std::int64_t last_channel = (first + depth - 1) / taps + 1;
    columns_.stage(range, operands.source, first_channel, last_channel, *kernels_, buffers.staged);
    from = buffers.staged;
    origin = first_channel;
    size = columns_.staged_size(range, kernels_->lanes);
    rows = columns_.staged_rows(range);
  }
  if (range.count % width != 0) {  // what no segment fills must still be numbers
    T* const last = buffers.panels + range.count / width * (block_depth_ * width + kernels_->lanes);
    std::fill(last, last + depth * width, T{0});
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    const std::int64_t channel = (first + k) / taps, tap = (first + k) % taps;
    T* const to = buffers.panels + k * width;
    const T* const row = from + columns_.start(channel - origin, tap, size, rows, kernels_->lanes);
    if (columns_.staged()) {
      kernels_->copy(to, row, buffers.segments, segments);
    } else {
      kernels_->copy_exact(to, row, buffers.segments, segments, columns_.plane());
    }
  }
}

template <class T>
ColumnRange ColumnProduct<T>::range_from(std::int64_t first, std::int64_t last) const {
  const std::int64_t end = in_place_ ? std::min(last, (first / columns_.grid() + 1) * columns_.grid()) : last;
  return {first, std::min(block_columns_, end - first)};
}

template <class T>
void ColumnProduct<T>::run(int part, const Operands& operands, void* workspace) const {
  if (part >= partition_.parts()) return;
  const Piece columns = piece(columns_.count(), kernels_->lanes, part % partition_.columns, partition_.columns);
  const Piece rows = piece(rows_, kernels_->rows, part / partition_.columns, partition_.rows);
  if (rows.first == rows.last) return;
  Carver carver(workspace);
  const Buffers buffers = carve(carver);
  const std::int64_t width = kernels_->width(), depth = columns_.depth();
  const std::int64_t panel_stride = block_depth_ * width + kernels_->lanes;
  GridOutput<T> output = operands.output;
  output.data += rows.first * output.plane;
  for (ColumnRange range = range_from(columns.first, columns.last); range.count > 0;
       range = range_from(range.first + range.count, columns.last)) {
    const std::int64_t segments = in_place_ ? 0
                                            : columns_.segments(range, width, panel_stride, operands.source.pitch,
                                                                kernels_->lanes, buffers.segments);
    const GridPlace<T> place{&columns_, output, range, output.plane};
    for (std::int64_t k = 0; k < depth; k += block_depth_) {
      const std::int64_t count = std::min(block_depth_, depth - k);
      if (!in_place_) pack(range, operands, k, count, buffers, segments);
      const T* const image = operands.source.data + range.first / columns_.grid() * operands.source.pitch;
      multiply(
          Block<T>{.kernels = kernels_,
                   .a = operands.a + rows.first * depth + k,
                   .lda = depth,
                   .rows = rows.last - rows.first,
                   .depth = count,
                   .panels = in_place_ ? image + k * columns_.plane() + range.first % columns_.grid() : buffers.panels,
                   .panel_stride = in_place_ ? width : panel_stride,
                   .ldb = in_place_ ? columns_.plane() : width,
                   .columns = range.count,
                   .scale = operands.scale == nullptr ? nullptr : operands.scale + rows.first,
                   .bias = operands.bias == nullptr ? nullptr : operands.bias + rows.first,
                   .add = operands.add,
                   .relu = operands.relu,
                   .begins = k == 0,
                   .ends = k + count == depth,
                   .sums = buffers.sums,
                   .sums_ld = block_columns_},
          place);
    }
  }
}

template class ColumnProduct<float>;
template class ColumnProduct<double>;

}  // namespace lamina::eigen
