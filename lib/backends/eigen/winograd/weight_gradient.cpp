// Winograd's weight gradient in blocks of spans and outputs.

#include "weight_gradient.h"

namespace lamina::eigen {
namespace {

// Bytes that should stay in the L3 cache. If there are several blocks of tiles:
constexpr std::int64_t sums_bytes = 8 << 20;        // sums of a block of outputs
constexpr std::int64_t points_bytes = 5 << 20;      // points of x and dy, of a block of tiles
constexpr std::int64_t points_bytes_5x5 = 2 << 20;  // the same for 5x5: as fast, in less memory
// If one block has all tiles:
constexpr std::int64_t x_bytes = 10 << 20;       // points of x, of a block of inputs
constexpr std::int64_t outputs_bytes = 4 << 20;  // sums and points of dy, of a block of outputs

}  // namespace

template <class T>
WinogradWeightGradient<T>::WinogradWeightGradient(const WinogradExtents& extents, int tile, int threads,
                                                  const MicroKernels<T>& kernels)
    : e_(extents),
      kernels_(&kernels),
      transforms_(&transforms_of(kernels, tile, extents.taps)),
      spans_(extents, tile),
      threads_(threads),
      positions_(transforms_->patch * transforms_->patch) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t lanes = kernels.lanes, longest = spans_.longest(), per_element = size * positions_;
  const std::int64_t unit = std::max<std::int64_t>(lanes, kernels.rows);  // one is a multiple of the other
  const auto block = [](std::int64_t count, std::int64_t fit, std::int64_t grain) {
    return round_up(divide_up(count, divide_up(count, std::max(grain, fit))), grain);
  };
  block_inputs_ = round_up(e_.inputs, lanes);
  block_outputs_ = block(e_.outputs, sums_bytes / per_element / e_.inputs, unit);
  const std::int64_t most_bytes = e_.taps == 5 ? points_bytes_5x5 : points_bytes;
  const std::int64_t tiles = most_bytes / per_element / (e_.inputs + block_outputs_);
  const std::int64_t spans = std::max<std::int64_t>(1, tiles / longest);
  block_spans_ = divide_up(spans_.count(), divide_up(spans_.count(), spans));
  // x is transformed for every block of outputs. If one block has all tiles, dy is transformed for every block of
  // inputs instead.
  const std::int64_t all = spans_.count() * longest, inputs = block(e_.inputs, x_bytes / per_element / all, lanes);
  const std::int64_t channels = divide_up(e_.outputs, block_outputs_) * e_.inputs + e_.outputs;
  const std::int64_t fewer = e_.inputs + divide_up(e_.inputs, inputs) * e_.outputs;
  if (inputs * all * per_element <= x_bytes && 2 * fewer <= channels) {
    block_inputs_ = inputs;
    block_outputs_ = block(e_.outputs, outputs_bytes / per_element / (inputs + all), unit);
    block_spans_ = spans_.count();
  }
  width_ = panel_width(block_inputs_, kernels);
  sums_ld_ = block_inputs_ + lanes;
  sums_position_ = block_outputs_ * sums_ld_ + lanes;
  dy_ld_ = block_outputs_ + lanes;
  dy_position_ = block_spans_ * longest * dy_ld_ + lanes;
  panel_stride_ = block_spans_ * longest * width_ + lanes;
  x_position_ = divide_up(block_inputs_, width_) * panel_stride_ + lanes;
  pixels_size_ = transforms_->patch * transforms_->patch_cols(longest) * lanes;
  workspace_bytes_ = allocated_bytes([&](auto& scratch) { allocate(scratch); });
}

template <class T>
auto WinogradWeightGradient<T>::allocate(ScratchAllocator& scratch) const -> Buffers {
  Buffers buffers;
  buffers.pixels = scratch.take<T>(threads_ * pixels_size_);
  buffers.x_points = scratch.take<T>(positions_ * x_position_);
  buffers.dy_points = scratch.take<T>(positions_ * dy_position_);
  buffers.sums = scratch.take<T>(positions_ * sums_position_);
  buffers.bias_sums = scratch.take<double>(threads_ * round_up(e_.outputs, kernels_->lanes));
  buffers.list = scratch.take<Panel<T>>(divide_up(block_inputs_, width_));
  return buffers;
}

template <class T>
ChannelPanels WinogradWeightGradient<T>::panels_of(IndexRange inputs) const {
  const std::int64_t lanes = kernels_->lanes;
  return {divide_up(inputs.last - inputs.first, lanes), width_ / lanes, lanes, panel_stride_};
}

template <class T>
template <class E>
void WinogradWeightGradient<T>::transform_x(IndexRange spans, std::int64_t tile, IndexRange inputs, const Source<E>& x,
                                            T* pixels, const Buffers& buffers) const {
  const int lanes = kernels_->lanes;
  const ChannelPanels panels = panels_of(inputs);
  for (std::int64_t i = spans.first; i < spans.last; ++i) {
    const TileSpan span = spans_[i];
    const std::int64_t cols = transforms_->patch_cols(span.tiles);
    for (std::int64_t channel = inputs.first; channel < inputs.last; channel += lanes) {
      PixelWindow<E> window = window_of(x, span.image, channel, e_.inputs, lanes, e_.in_h, e_.in_w, span.h - e_.pad_h,
                                        span.w - e_.pad_w, transforms_->patch, cols);
      window.prefetch = to_next_window(spans_, i, x, channel, inputs.first, inputs.last, lanes, e_.in_h, e_.in_w);
      stage(kernels_->winograd, pixels, window);
      transforms_->patches({.at = buffers.x_points + panels.at((channel - inputs.first) / lanes) + tile * width_,
                            .position = x_position_,
                            .tile = width_,
                            .tiles = span.tiles},
                           pixels, cols);
    }
    tile += span.tiles;
  }
}

template <class T>
template <class E>
void WinogradWeightGradient<T>::transform_dy(IndexRange spans, std::int64_t tile, IndexRange outputs,
                                             const Source<E>& dy, T* pixels, double* bias_sums,
                                             const Buffers& buffers) const {
  const int lanes = kernels_->lanes;
  for (std::int64_t i = spans.first; i < spans.last; ++i) {
    const TileSpan span = spans_[i];
    const std::int64_t cols = span.tiles * transforms_->tile;
    for (std::int64_t k = outputs.first; k < outputs.last; k += lanes) {
      PixelWindow<E> window =
          window_of(dy, span.image, k, e_.outputs, lanes, e_.out_h, e_.out_w, span.h, span.w, transforms_->tile, cols);
      window.prefetch = to_next_window(spans_, i, dy, k, outputs.first, outputs.last, lanes, e_.out_h, e_.out_w);
      stage(kernels_->winograd, pixels, window);
      alignas(64) T sums[64 / sizeof(T)] = {};
      transforms_->tiles({.at = buffers.dy_points + tile * dy_ld_ + k - outputs.first,
                          .position = dy_position_,
                          .tile = dy_ld_,
                          .tiles = span.tiles},
                         pixels, cols, sums);
      for (int lane = 0; bias_sums != nullptr && lane < lanes; ++lane)
        bias_sums[k + lane] += static_cast<double>(sums[lane]);
    }
    tile += span.tiles;
  }
}

template <class T>
void WinogradWeightGradient<T>::add_block(ThreadPool& pool, const Cut& cut, const Operands& operands,
                                          const Buffers& buffers) const {
  const bool x_stays = block_spans_ == spans_.count() && cut.outputs.first > 0;
  pool.run([&](int part) {
    const IndexRange share = share_of(cut.spans.last - cut.spans.first, 1, part, threads_);
    const IndexRange mine{cut.spans.first + share.first, cut.spans.first + share.last};
    const std::int64_t tile = spans_.tiles(cut.spans.first, mine.first);
    T* const pixels = buffers.pixels + part * pixels_size_;
    if (!x_stays) {
      operands.x.template visit<T>([&](const auto& x) { transform_x(mine, tile, cut.inputs, x, pixels, buffers); });
    }
    double* const bias_sums = buffers.bias_sums + part * round_up(e_.outputs, kernels_->lanes);
    operands.dy.template visit<T>([&](const auto& dy) {
      transform_dy(mine, tile, cut.outputs, dy, pixels, cut.inputs.first == 0 ? bias_sums : nullptr, buffers);
    });
  });
  const std::int64_t tiles = spans_.tiles(cut.spans.first, cut.spans.last);
  const std::span<const Panel<T>> list = panels_of(cut.inputs).list(buffers.x_points, buffers.sums, buffers.list);
  const Epilogue<T> epilogue{.add = cut.spans.first > 0};
  pool.run([&](int part) {
    const IndexRange positions = share_of(positions_, 1, part, threads_);
    for (std::int64_t position = positions.first; position < positions.last; ++position) {
      multiply_panels(*kernels_,
                      {.depth = tiles,
                       .a = buffers.dy_points + position * dy_position_,
                       .lda = dy_ld_,
                       .rows = 0,
                       .b = nullptr,
                       .ldb = width_,
                       .c = nullptr,
                       .ldc = sums_ld_,
                       .epilogue = &epilogue},
                      cut.outputs.last - cut.outputs.first, list, position * x_position_, position * sums_position_,
                      true);
    }
  });
}

template <class T>
void WinogradWeightGradient<T>::write(ThreadPool& pool, const Cut& cut, const Operands& operands,
                                      const Buffers& buffers) const {
  if (operands.dw == nullptr) return;
  const std::int64_t lanes = kernels_->lanes, weights = e_.taps * e_.taps;
  pool.split(cut.outputs.last - cut.outputs.first, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t k = first; k < last; ++k) {
      for (std::int64_t channel = cut.inputs.first; channel < cut.inputs.last; channel += lanes) {
        transforms_->gradients(operands.dw + ((cut.outputs.first + k) * e_.inputs + channel) * weights, weights,
                               buffers.sums + k * sums_ld_ + channel - cut.inputs.first, sums_position_,
                               static_cast<int>(std::min(lanes, e_.inputs - channel)), operands.add);
      }
    }
  });
}

template <class T>
void WinogradWeightGradient<T>::run_group(ThreadPool& pool, const Operands& operands, const Buffers& buffers) const {
  const std::int64_t bias_ld = round_up(e_.outputs, kernels_->lanes);
  std::fill(buffers.bias_sums, buffers.bias_sums + threads_ * bias_ld, 0.0);
  for (std::int64_t c = 0; c < e_.inputs; c += block_inputs_) {
    for (std::int64_t k = 0; k < e_.outputs; k += block_outputs_) {
      Cut cut{.spans = {},
              .inputs = {c, std::min<std::int64_t>(c + block_inputs_, e_.inputs)},
              .outputs = {k, std::min<std::int64_t>(k + block_outputs_, e_.outputs)}};
      for (std::int64_t first = 0; first < spans_.count(); first += block_spans_) {
        cut.spans = {first, std::min(first + block_spans_, spans_.count())};
        add_block(pool, cut, operands, buffers);
      }
      write(pool, cut, operands, buffers);
    }
  }
  for (std::int64_t k = 0; operands.db != nullptr && k < e_.outputs; ++k) {
    double sum = operands.add ? static_cast<double>(operands.db[k]) : 0.0;
    for (int part = 0; part < threads_; ++part) sum += buffers.bias_sums[part * bias_ld + k];
    operands.db[k] = static_cast<T>(sum);
  }
}

template <class T>
void WinogradWeightGradient<T>::run(ThreadPool& pool, const Operands& operands, void* workspace) const {
  ScratchAllocator scratch(workspace);
  const Buffers buffers = allocate(scratch);
  for (int group = 0; group < e_.groups; ++group) {
    Operands of_group = operands;
    of_group.x = operands.x.further(group * e_.inputs * e_.in_plane());
    of_group.dy = operands.dy.further(group * e_.outputs * e_.out_plane());
    if (of_group.dw != nullptr) of_group.dw += std::int64_t{group} * e_.outputs * e_.inputs * e_.taps * e_.taps;
    if (of_group.db != nullptr) of_group.db += std::int64_t{group} * e_.outputs;
    run_group(pool, of_group, buffers);
  }
}

template class WinogradWeightGradient<float>;
template class WinogradWeightGradient<double>;

}  // namespace lamina::eigen
