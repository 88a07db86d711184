// Winograd's filtering in blocks of strips: patches in, a product per position, tiles out.

#include "winograd_product.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t block_tiles = 112;             // each transformed filter that is read meets so many
constexpr std::int64_t block_panels = 2;              // of outputs whose products wait for their transform
constexpr std::int64_t transform_outputs_worth = 16;  // transforming a patch costs about as much as so many outputs

/// The cut that makes the largest piece smallest; pieces that share strips transform their patches twice.
Partition cut(std::int64_t strips, std::int64_t outputs, int threads, std::int64_t width) {
  Partition best;
  std::int64_t best_cost = 0;
  for (int row_parts = 1; row_parts <= threads; ++row_parts) {
    if (threads % row_parts != 0) continue;
    const int column_parts = threads / row_parts;
    const std::int64_t tallest = divide_up(divide_up(outputs, width), row_parts) * width;
    const std::int64_t cost = divide_up(strips, column_parts) * (std::min(tallest, outputs) + transform_outputs_worth);
    if (row_parts == 1 || cost < best_cost) {
      best = {column_parts, row_parts};
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace

template <class T>
WinogradProduct<T>::WinogradProduct(const WinogradExtents& extents, int tile, bool flipped, int threads,
                                    const MicroKernels<T>& kernels)
    : e_(extents),
      flipped_(flipped),
      kernels_(&kernels),
      transforms_(&transforms_of(kernels, tile)),
      strips_(extents, tile),
      positions_(transforms_->patch * transforms_->patch) {
  const std::int64_t lanes = kernels.lanes, width = kernels.width();
  const std::int64_t panels = divide_up(e_.outputs, width);
  // A vector more than is needed from row to row and position to position, so that they fall into different sets.
  panel_stride_ = e_.inputs * width + lanes;
  filter_position_ = panels * panel_stride_ + lanes;
  filter_stride_ = positions_ * filter_position_;
  partition_ = cut(strips_.count(), e_.outputs, threads, width);
  const std::int64_t share = divide_up(strips_.count(), partition_.columns);
  const std::int64_t fit = std::max<std::int64_t>(1, block_tiles / strips_.longest());
  block_strips_ = divide_up(share, divide_up(share, fit));
  block_outputs_ = std::min(block_panels, divide_up(panels, partition_.rows)) * width;
  point_ld_ = round_up(e_.inputs, lanes) + lanes;
  point_position_ = block_strips_ * strips_.longest() * point_ld_ + lanes;
  product_ld_ = block_outputs_ + lanes;
  product_position_ = block_strips_ * strips_.longest() * product_ld_ + lanes;
  Carver counter;
  carve(counter);
  workspace_bytes_ = counter.used_bytes();
}

template <class T>
auto WinogradProduct<T>::carve(Carver& carver) const -> Buffers {
  const std::int64_t cols = strips_.longest() * transforms_->tile + 2;
  Buffers buffers;
  buffers.pixels = carver.take<T>(transforms_->patch * cols * kernels_->lanes);
  buffers.points = carver.take<T>(positions_ * point_position_);
  buffers.products = carver.take<T>(positions_ * product_position_);
  return buffers;
}

template <class T>
void WinogradProduct<T>::transform_filters(const T* w, T* to, std::int64_t first, std::int64_t last) const {
  const std::int64_t lanes = kernels_->lanes, inputs = e_.inputs, outputs = e_.outputs;
  const std::int64_t bundles = divide_up(outputs, lanes);
  const std::int64_t per_output = flipped_ ? 9 : inputs * 9, per_input = flipped_ ? outputs * 9 : 9;
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t group = i / bundles, bundle = i % bundles;
    const T* const from = w + group * inputs * outputs * 9 + bundle * lanes * per_output;
    T* const made =
        to + group * filter_stride_ + bundle / kernels_->vectors * panel_stride_ + bundle % kernels_->vectors * lanes;
    const int count = static_cast<int>(std::min(lanes, outputs - bundle * lanes));
    for (std::int64_t input = 0; input < inputs; ++input) {
      transforms_->filters(made + input * kernels_->width(), filter_position_, from + input * per_input, per_output,
                           count, flipped_);
    }
  }
}

template <class T>
void WinogradProduct<T>::transform_inputs(Piece strips, const Operands& operands, const Buffers& buffers) const {
  const int lanes = kernels_->lanes;
  std::int64_t tile = 0;
  for (std::int64_t i = strips.first; i < strips.last; ++i) {
    const Strip strip = strips_[i];
    const std::int64_t cols = strip.tiles * transforms_->tile + 2;
    for (std::int64_t channel = 0; channel < e_.inputs; channel += lanes) {
      kernels_->winograd.stage(buffers.pixels,
                               window_of(operands.source, strip.image, channel, e_.inputs, lanes, e_.in_h, e_.in_w,
                                         strip.h - e_.pad_h, strip.w - e_.pad_w, transforms_->patch, cols));
      transforms_->patches({.at = buffers.points + tile * point_ld_ + channel,
                            .position = point_position_,
                            .tile = point_ld_,
                            .tiles = strip.tiles},
                           buffers.pixels, cols);
    }
    tile += strip.tiles;
  }
}

template <class T>
void WinogradProduct<T>::transform_outputs(Piece strips, Piece outputs, const Operands& operands,
                                           const Buffers& buffers) const {
  const int lanes = kernels_->lanes;
  std::int64_t tile = 0;
  for (std::int64_t i = strips.first; i < strips.last; ++i) {
    const Strip strip = strips_[i];
    const std::int64_t cols = strip.tiles * transforms_->tile;
    for (std::int64_t k = outputs.first; k < outputs.last; k += lanes) {
      alignas(64) T bias[64 / sizeof(T)] = {};
      if (operands.bias != nullptr) {
        std::copy(operands.bias + k, operands.bias + std::min<std::int64_t>(k + lanes, e_.outputs), bias);
      }
      transforms_->outputs(buffers.pixels, cols,
                           {.at = buffers.products + tile * product_ld_ + k - outputs.first,
                            .position = product_position_,
                            .tile = product_ld_,
                            .tiles = strip.tiles},
                           bias);
      kernels_->winograd.unstage(buffers.pixels,
                                 window_of(Source<T>{operands.to, operands.pitch}, strip.image, k, e_.outputs, lanes,
                                           e_.out_h, e_.out_w, strip.h, strip.w, transforms_->tile, cols),
                                 operands.add, operands.relu);
    }
    tile += strip.tiles;
  }
}

template <class T>
void WinogradProduct<T>::run(int part, const Operands& operands, void* workspace) const {
  if (part >= partition_.parts()) return;
  const std::int64_t width = kernels_->width();
  const Piece strips = piece(strips_.count(), 1, part % partition_.columns, partition_.columns);
  const Piece outputs = piece(e_.outputs, width, part / partition_.columns, partition_.rows);
  if (outputs.first == outputs.last) return;
  Carver carver(workspace);
  const Buffers buffers = carve(carver);
  for (std::int64_t first = strips.first; first < strips.last; first += block_strips_) {
    const Piece block{first, std::min(first + block_strips_, strips.last)};
    std::int64_t tiles = 0;
    for (std::int64_t i = block.first; i < block.last; ++i) tiles += strips_[i].tiles;
    transform_inputs(block, operands, buffers);
    for (std::int64_t k = outputs.first; k < outputs.last; k += block_outputs_) {
      const std::int64_t count = std::min(block_outputs_, outputs.last - k);
      for (int position = 0; position < positions_; ++position) {
        multiply(Block<T>{.kernels = kernels_,
                          .a = buffers.points + position * point_position_,
                          .lda = point_ld_,
                          .rows = tiles,
                          .depth = e_.inputs,
                          .panels = operands.filters + position * filter_position_ + k / width * panel_stride_,
                          .panel_stride = panel_stride_,
                          .ldb = width,
                          .columns = round_up(count, kernels_->lanes)},
                 RowMajor<T>{buffers.products + position * product_position_, product_ld_});
      }
      transform_outputs(block, {k, k + count}, operands, buffers);
    }
  }
}

template class WinogradProduct<float>;
template class WinogradProduct<double>;

}  // namespace lamina::eigen
