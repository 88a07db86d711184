// Winograd's weight gradient in blocks of strips and outputs.

#include "winograd_params.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t sums_bytes = 8 << 20;    // of a block of outputs: what should stay in the third-level cache
constexpr std::int64_t points_bytes = 8 << 20;  // of a block of tiles, x and dy

}  // namespace

template <class T>
WinogradParams<T>::WinogradParams(const WinogradExtents& extents, int tile, int threads, const MicroKernels<T>& kernels)
    : e_(extents),
      kernels_(&kernels),
      transforms_(&transforms_of(kernels, tile)),
      strips_(extents, tile),
      threads_(threads),
      positions_(transforms_->patch * transforms_->patch) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t lanes = kernels.lanes, width = kernels.width();
  const std::int64_t unit = std::max<std::int64_t>(lanes, kernels.rows);  // one is a multiple of the other
  const std::int64_t fit = std::max(unit, sums_bytes / size / positions_ / e_.inputs);
  block_outputs_ = round_up(divide_up(e_.outputs, divide_up(e_.outputs, fit)), unit);
  sums_ld_ = round_up(e_.inputs, lanes) + lanes;
  sums_position_ = block_outputs_ * sums_ld_ + lanes;
  dy_ld_ = block_outputs_ + lanes;
  const std::int64_t longest = strips_.longest();
  const std::int64_t tiles = points_bytes / size / positions_ / (e_.inputs + block_outputs_);
  const std::int64_t strips = std::max<std::int64_t>(1, tiles / longest);
  block_strips_ = divide_up(strips_.count(), divide_up(strips_.count(), strips));
  dy_position_ = block_strips_ * longest * dy_ld_ + lanes;
  panel_stride_ = block_strips_ * longest * width + lanes;
  x_position_ = divide_up(e_.inputs, width) * panel_stride_ + lanes;
  pixels_size_ = transforms_->patch * (longest * tile + 2) * lanes;
  Carver counter;
  carve(counter);
  workspace_bytes_ = counter.used_bytes();
}

template <class T>
auto WinogradParams<T>::carve(Carver& carver) const -> Buffers {
  Buffers buffers;
  buffers.pixels = carver.take<T>(threads_ * pixels_size_);
  buffers.x_points = carver.take<T>(positions_ * x_position_);
  buffers.dy_points = carver.take<T>(positions_ * dy_position_);
  buffers.sums = carver.take<T>(positions_ * sums_position_);
  buffers.bias_sums = carver.take<double>(threads_ * round_up(e_.outputs, kernels_->lanes));
  return buffers;
}

template <class T>
void WinogradParams<T>::transform_x(Piece strips, std::int64_t tile, const Source<T>& x, T* pixels,
                                    const Buffers& buffers) const {
  const int lanes = kernels_->lanes;
  for (std::int64_t i = strips.first; i < strips.last; ++i) {
    const Strip strip = strips_[i];
    const std::int64_t cols = strip.tiles * transforms_->tile + 2;
    for (std::int64_t channel = 0; channel < e_.inputs; channel += lanes) {
      PixelWindow<T> window = window_of(x, strip.image, channel, e_.inputs, lanes, e_.in_h, e_.in_w, strip.h - e_.pad_h,
                                        strip.w - e_.pad_w, transforms_->patch, cols);
      window.ahead = to_next_window(strips_, i, x, channel, 0, e_.inputs, lanes, e_.in_h, e_.in_w);
      kernels_->winograd.stage(pixels, window);
      const std::int64_t width = kernels_->width();
      transforms_->patches({.at = buffers.x_points + channel / width * panel_stride_ + tile * width + channel % width,
                            .position = x_position_,
                            .tile = width,
                            .tiles = strip.tiles},
                           pixels, cols);
    }
    tile += strip.tiles;
  }
}

template <class T>
void WinogradParams<T>::transform_dy(Piece strips, std::int64_t tile, Piece outputs, const Source<T>& dy, T* pixels,
                                     double* bias_sums, const Buffers& buffers) const {
  const int lanes = kernels_->lanes;
  for (std::int64_t i = strips.first; i < strips.last; ++i) {
    const Strip strip = strips_[i];
    const std::int64_t cols = strip.tiles * transforms_->tile;
    for (std::int64_t k = outputs.first; k < outputs.last; k += lanes) {
      PixelWindow<T> window = window_of(dy, strip.image, k, e_.outputs, lanes, e_.out_h, e_.out_w, strip.h, strip.w,
                                        transforms_->tile, cols);
      window.ahead = to_next_window(strips_, i, dy, k, outputs.first, outputs.last, lanes, e_.out_h, e_.out_w);
      kernels_->winograd.stage(pixels, window);
      alignas(64) T sums[64 / sizeof(T)] = {};
      transforms_->tiles({.at = buffers.dy_points + tile * dy_ld_ + k - outputs.first,
                          .position = dy_position_,
                          .tile = dy_ld_,
                          .tiles = strip.tiles},
                         pixels, cols, sums);
      for (int lane = 0; lane < lanes; ++lane) bias_sums[k + lane] += static_cast<double>(sums[lane]);
    }
    tile += strip.tiles;
  }
}

template <class T>
void WinogradParams<T>::add_block(Pool& pool, Piece strips, Piece outputs, const Operands& operands,
                                  const Buffers& buffers) const {
  const std::int64_t width = kernels_->width(), lanes = kernels_->lanes;
  pool.run([&](int part) {
    const Piece share = piece(strips.last - strips.first, 1, part, threads_);
    const Piece mine{strips.first + share.first, strips.first + share.last};
    const std::int64_t tile = strips_.tiles(strips.first, mine.first);
    T* const pixels = buffers.pixels + part * pixels_size_;
    transform_x(mine, tile, operands.x, pixels, buffers);
    transform_dy(mine, tile, outputs, operands.dy, pixels, buffers.bias_sums + part * round_up(e_.outputs, lanes),
                 buffers);
  });
  const std::int64_t depth = strips_.tiles(strips.first, strips.last);
  pool.run([&](int part) {
    const Piece positions = piece(positions_, 1, part, threads_);
    for (std::int64_t position = positions.first; position < positions.last; ++position) {
      multiply(Block<T>{.kernels = kernels_,
                        .a = buffers.dy_points + position * dy_position_,
                        .lda = dy_ld_,
                        .rows = outputs.last - outputs.first,
                        .depth = depth,
                        .panels = buffers.x_points + position * x_position_,
                        .panel_stride = panel_stride_,
                        .ldb = width,
                        .columns = round_up(e_.inputs, lanes),
                        .a_is_columns = true,
                        .begins = strips.first == 0},
               RowMajor<T>{buffers.sums + position * sums_position_, sums_ld_});
    }
  });
}

template <class T>
void WinogradParams<T>::write(Pool& pool, Piece outputs, const Operands& operands, const Buffers& buffers) const {
  if (operands.dw == nullptr) return;
  const std::int64_t lanes = kernels_->lanes;
  pool.split(outputs.last - outputs.first, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t k = first; k < last; ++k) {
      for (std::int64_t channel = 0; channel < e_.inputs; channel += lanes) {
        transforms_->gradients(operands.dw + ((outputs.first + k) * e_.inputs + channel) * 9, 9,
                               buffers.sums + k * sums_ld_ + channel, sums_position_,
                               static_cast<int>(std::min(lanes, e_.inputs - channel)), operands.add);
      }
    }
  });
}

template <class T>
void WinogradParams<T>::run_group(Pool& pool, const Operands& operands, const Buffers& buffers) const {
  const std::int64_t bias_ld = round_up(e_.outputs, kernels_->lanes);
  std::fill(buffers.bias_sums, buffers.bias_sums + threads_ * bias_ld, 0.0);
  for (std::int64_t k = 0; k < e_.outputs; k += block_outputs_) {
    const Piece outputs{k, std::min<std::int64_t>(k + block_outputs_, e_.outputs)};
    for (std::int64_t first = 0; first < strips_.count(); first += block_strips_) {
      add_block(pool, {first, std::min(first + block_strips_, strips_.count())}, outputs, operands, buffers);
    }
    write(pool, outputs, operands, buffers);
  }
  for (std::int64_t k = 0; operands.db != nullptr && k < e_.outputs; ++k) {
    double sum = operands.add ? static_cast<double>(operands.db[k]) : 0.0;
    for (int part = 0; part < threads_; ++part) sum += buffers.bias_sums[part * bias_ld + k];
    operands.db[k] = static_cast<T>(sum);
  }
}

template <class T>
void WinogradParams<T>::run(Pool& pool, const Operands& operands, void* workspace) const {
  Carver carver(workspace);
  const Buffers buffers = carve(carver);
  for (int group = 0; group < e_.groups; ++group) {
    Operands of_group = operands;
    of_group.x.data += group * e_.inputs * e_.in_plane();
    of_group.dy.data += group * e_.outputs * e_.out_plane();
    if (of_group.dy.mask != nullptr) of_group.dy.mask += group * e_.outputs * e_.out_plane();
    if (of_group.dw != nullptr) of_group.dw += std::int64_t{group} * e_.outputs * e_.inputs * 9;
    if (of_group.db != nullptr) of_group.db += std::int64_t{group} * e_.outputs;
    run_group(pool, of_group, buffers);
  }
}

template class WinogradParams<float>;
template class WinogradParams<double>;

}  // namespace lamina::eigen
