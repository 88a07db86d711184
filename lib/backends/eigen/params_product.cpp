// The gradient of a convolution's weights and bias as a product.

#include "params_product.h"

#include <algorithm>
#include <utility>

namespace lamina::eigen {
namespace {

constexpr std::int64_t strip_bytes = 1280;   // of one row of columns
constexpr std::int64_t panel_filters = 512;  // with strip_bytes: packed dy fills about half a second-level cache
constexpr std::int64_t staged_bytes = 128 * 1024;
constexpr std::int64_t partial_bytes = 16 << 20;  // of all partial sums, where there is more than one

/// As for other products, but threads may also share the positions, at the price of partial sums.
template <class T>
Partition cut(std::int64_t positions, std::int64_t rows, std::int64_t filters, int threads, int tile_rows) {
  Partition best{.columns = 1, .rows = threads};
  double best_cost = 0;
  for (int parts = 1; parts <= threads; ++parts) {
    if (threads % parts != 0) continue;
    const std::int64_t bytes = parts * rows * filters * static_cast<std::int64_t>(sizeof(T));
    if (parts > 1 && (bytes > partial_bytes || positions < parts)) continue;
    const double tallest = static_cast<double>(divide_up(divide_up(rows, tile_rows), threads / parts) * tile_rows);
    const double longest = static_cast<double>(divide_up(positions, parts));
    const double f = static_cast<double>(filters);
    constexpr double packing_rows = 24;  // transposing an element of dy costs about as much as using it in so many rows
    constexpr double summing = 16;       // adding up an element of a partial sum, in multiply-adds
    const double cost = longest * f * (tallest + packing_rows) + summing * (parts - 1) * static_cast<double>(rows) * f;
    if (parts == 1 || cost < best_cost) {
      best = {.columns = parts, .rows = threads / parts};
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace

template <class T>
ParamsProduct<T>::ParamsProduct(Columns columns, std::int64_t filters, int groups, int threads,
                                const MicroKernels<T>& kernels)
    : kernels_(&kernels),
      columns_(std::move(columns)),
      filters_(filters),
      groups_(groups),
      partition_(cut<T>(columns_.count(), columns_.depth(), filters, threads, kernels.rows)) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t target = strip_bytes / size;
  const std::int64_t share = divide_up(columns_.count(), partition_.columns);
  in_place_ = !columns_.staged() && columns_.grid() >= target / 2;
  const std::int64_t whole = in_place_ ? std::min(columns_.grid(), share) : share;
  block_depth_ = divide_up(whole, divide_up(whole, target));
  block_filters_ = divide_up(filters_, divide_up(filters_, panel_filters));
  block_filters_ = round_up(block_filters_, kernels.width());
  const std::int64_t channel = std::max<std::int64_t>(1, columns_.staged_bound(block_depth_, kernels.lanes) * size);
  const std::int64_t needed = kernels.rows / columns_.taps() + 2;  // by one strip of tile rows
  staged_channels_ = std::max(needed, staged_bytes / channel);
  staged_channels_ = std::min(staged_channels_, columns_.depth() / columns_.taps());
}

template <class T>
auto ParamsProduct<T>::carve(Carver& carver) const -> Buffers {
  const std::int64_t width = kernels_->width(), lanes = kernels_->lanes;
  Buffers buffers;
  buffers.panels = carver.take<T>(block_filters_ / width * block_depth_ * width);
  buffers.strip = carver.take<T>(kernels_->rows * round_up(block_depth_, lanes) + lanes);
  buffers.staged = carver.take<T>(staged_channels_ * columns_.staged_bound(block_depth_, kernels_->lanes) + lanes);
  buffers.segments = carver.take<Segment>(columns_.segment_bound(block_depth_, block_depth_));
  return buffers;
}

template <class T>
auto ParamsProduct<T>::carve_shared(Carver& carver) const -> Shared {
  Shared shared;
  shared.partial = carver.take<T>(partition_.columns * groups_ * rows() * ld());
  shared.bias_sums = carver.take<double>(partition_.columns * groups_ * filters_);
  return shared;
}

template <class T>
std::size_t ParamsProduct<T>::workspace_bytes() const {
  Carver counter;
  carve_shared(counter);
  for (int part = 0; part < partition_.parts(); ++part) carve(counter);
  return counter.used_bytes();
}

template <class T>
void ParamsProduct<T>::pack_dy(const Source<T>& dy, ColumnRange range, std::int64_t first_filter, std::int64_t filters,
                               T* panels) const {
  const std::int64_t width = kernels_->width(), grid = columns_.grid(), stride = block_depth_ * width;
  for (std::int64_t f = 0; f < filters; f += width) {
    const std::int64_t count = std::min(width, filters - f);
    T* const panel = panels + f / width * stride;
    if (count < width) std::fill(panel, panel + range.count * width, T{0});
    for (std::int64_t j = 0; j < range.count;) {
      const std::int64_t image = (range.first + j) / grid, at = (range.first + j) % grid;
      const std::int64_t run = std::min(grid - at, range.count - j);
      const std::int64_t offset = (first_filter + f) * grid + at;
      const T* const mask = dy.mask == nullptr ? nullptr : dy.mask + image * dy.mask_pitch + offset;
      kernels_->transpose(panel + j * width, width, dy.data + image * dy.pitch + offset, grid, mask, grid, count, run);
      j += run;
    }
  }
}

template <class T>
void ParamsProduct<T>::sum_bias(std::int64_t depth, std::int64_t filters, const T* panels, double* sums) const {
  const std::int64_t width = kernels_->width();
  for (std::int64_t f = 0; f < filters; f += width) {
    const T* row = panels + f * block_depth_;
    T block[256] = {};
    for (std::int64_t k = 0; k < depth; ++k, row += width) {
      for (std::int64_t j = 0; j < width; ++j) block[j] += row[j];
    }
    for (std::int64_t j = 0; j < std::min(width, filters - f); ++j) sums[f + j] += static_cast<double>(block[j]);
  }
}

template <class T>
void ParamsProduct<T>::add_rows(const Operands& operands, int group, ColumnRange range, Piece part_rows,
                                std::int64_t first_filter, std::int64_t filters, const Buffers& buffers, T* partial,
                                bool add) const {
  const std::int64_t taps = columns_.taps(), channels = columns_.depth() / taps, lanes = kernels_->lanes;
  Source<T> x = operands.x;
  x.data += group * operands.x_group;
  Block<T> block{.kernels = kernels_,
                 .a = nullptr,
                 .lda = 0,
                 .rows = 0,
                 .depth = range.count,
                 .panels = buffers.panels,
                 .panel_stride = block_depth_ * kernels_->width(),
                 .ldb = kernels_->width(),
                 .columns = round_up(filters, lanes)};
  block.add = add;
  if (in_place_) {
    const std::int64_t grid = columns_.grid();
    block.a = x.data + range.first / grid * x.pitch + range.first % grid + part_rows.first * grid;
    block.lda = grid;
    block.rows = part_rows.last - part_rows.first;
    multiply(block, RowMajor<T>{partial + part_rows.first * ld() + first_filter, ld()});
    return;
  }
  const std::int64_t segments = columns_.segments(range, block_depth_, 0, x.pitch, kernels_->lanes, buffers.segments);
  const std::int64_t size = columns_.staged_size(range, kernels_->lanes), staged_rows = columns_.staged_rows(range);
  std::int64_t staged_first = 0, staged_last = columns_.staged() ? 0 : channels;
  block.a = buffers.strip;
  block.lda = round_up(block_depth_, lanes);
  for (std::int64_t i = part_rows.first; i < part_rows.last; i += kernels_->rows) {
    block.rows = std::min<std::int64_t>(kernels_->rows, part_rows.last - i);
    if ((i + block.rows - 1) / taps >= staged_last) {
      staged_first = i / taps;
      staged_last = std::min(channels, staged_first + staged_channels_);
      columns_.stage(range, x, staged_first, staged_last, kernels_->lanes, buffers.staged);
    }
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const std::int64_t channel = (i + row) / taps, tap = (i + row) % taps;
      T* const to = buffers.strip + row * block.lda;
      if (columns_.staged()) {
        kernels_->copy(to,
                       buffers.staged + columns_.start(channel - staged_first, tap, size, staged_rows, kernels_->lanes),
                       buffers.segments, segments);
      } else {
        kernels_->copy_exact(to, x.data + columns_.start(channel, tap, 0, 0, kernels_->lanes), buffers.segments,
                             segments);
      }
    }
    multiply(block, RowMajor<T>{partial + i * ld() + first_filter, ld()});
  }
}

template <class T>
void ParamsProduct<T>::run_part(int part, const Operands& operands, int group, const Buffers& buffers, T* partial,
                                double* bias_sums) const {
  const Piece positions = piece(columns_.count(), 1, part % partition_.columns, partition_.columns);
  const int row_part = part / partition_.columns;
  const Piece part_rows =
      operands.dw == nullptr ? Piece{0, 0} : piece(rows(), kernels_->rows, row_part, partition_.rows);
  const bool sums_bias = row_part == 0 && operands.db != nullptr;
  if (sums_bias) std::fill(bias_sums, bias_sums + filters_, 0.0);
  if (part_rows.first == part_rows.last && !sums_bias) return;
  Source<T> dy = operands.dy;
  dy.data += group * filters_ * columns_.grid();
  if (dy.mask != nullptr) dy.mask += group * filters_ * columns_.grid();
  for (std::int64_t first = positions.first; first < positions.last;) {
    std::int64_t count = std::min(block_depth_, positions.last - first);
    if (in_place_) count = std::min(count, columns_.grid() - first % columns_.grid());
    const ColumnRange range{first, count};
    for (std::int64_t f = 0; f < filters_; f += block_filters_) {
      const std::int64_t filters = std::min(block_filters_, filters_ - f);
      pack_dy(dy, range, f, filters, buffers.panels);
      if (sums_bias) sum_bias(count, filters, buffers.panels, bias_sums + f);
      if (part_rows.first < part_rows.last) {
        add_rows(operands, group, range, part_rows, f, filters, buffers, partial, first != positions.first);
      }
    }
    first += count;
  }
}

template <class T>
void ParamsProduct<T>::write(const Operands& operands, const Shared& shared, Piece filters) const {
  constexpr std::int64_t side = 32;
  const std::int64_t part_size = groups_ * rows() * ld();
  T square[side * side];
  for (std::int64_t k = filters.first; k < filters.last; ++k) {
    if (operands.db == nullptr) break;
    double sum = 0;
    for (int part = 0; part < partition_.columns; ++part) sum += shared.bias_sums[part * groups_ * filters_ + k];
    operands.db[k] = static_cast<T>(operands.add ? sum + static_cast<double>(operands.db[k]) : sum);
  }
  if (operands.dw == nullptr) return;
  for (std::int64_t k = filters.first; k < filters.last;) {
    const std::int64_t group = k / filters_;
    const std::int64_t count = std::min({side, filters.last - k, (group + 1) * filters_ - k});
    const T* const from = shared.partial + group * rows() * ld() + k % filters_;
    for (std::int64_t i = 0; i < rows(); i += side) {
      const std::int64_t height = std::min(side, rows() - i);
      for (int part = 0; part < partition_.columns; ++part) {
        kernels_->transpose(square, side, from + part * part_size + i * ld(), ld(), nullptr, 0, height, count);
        const bool add = operands.add || part > 0;
        for (std::int64_t f = 0; f < count; ++f) {
          T* const to = operands.dw + (k + f) * rows() + i;
          for (std::int64_t j = 0; j < height; ++j) to[j] = add ? to[j] + square[f * side + j] : square[f * side + j];
        }
      }
    }
    k += count;
  }
}

template <class T>
void ParamsProduct<T>::run(Pool& pool, const Operands& operands, void* workspace) const {
  Carver shared_carver(workspace);
  const Shared shared = carve_shared(shared_carver);
  Carver counter;
  carve(counter);
  pool.run([&](int part) {
    if (part >= partition_.parts()) return;
    Carver carver(static_cast<std::byte*>(workspace) + shared_carver.used_bytes() +
                  static_cast<std::size_t>(part) * counter.used_bytes());
    const Buffers buffers = carve(carver);
    const std::int64_t slot = part % partition_.columns;
    for (int group = 0; group < groups_; ++group) {
      run_part(part, operands, group, buffers, shared.partial + (slot * groups_ + group) * rows() * ld(),
               shared.bias_sums + (slot * groups_ + group) * filters_);
    }
  });
  pool.split(groups_ * filters_, 8, [&](std::int64_t first, std::int64_t last) {
    write(operands, shared, {first, last});
  });
}

template class ParamsProduct<float>;
template class ParamsProduct<double>;

}  // namespace lamina::eigen
