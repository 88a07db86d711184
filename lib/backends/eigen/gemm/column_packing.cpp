// Packing of a convolution's columns into panels.

#include <algorithm>

#include "column_product.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t packing_bytes = 16 * 1024;  // copied channels: half of an L1 cache
constexpr std::int64_t planes_ahead = 2;           // planes from the copied to the prefetched one

}  // namespace

/// The number of channels that are copied at once: they stay in the L1 cache until they are packed.
template <class T>
std::int64_t ColumnProduct<T>::staged_channels(const Section& section) const {
  const Columns& columns = section.columns;
  const std::int64_t bytes =
      columns.staged_bound(section.block_columns, kernels_->lanes) * static_cast<std::int64_t>(sizeof(T));
  return bytes == 0 ? 0 : std::clamp<std::int64_t>(packing_bytes / bytes, 1, columns.channels());
}

template <class T>
void ColumnProduct<T>::pack(const Section& section, ColumnRange range, std::span<const Panel<T>> panels,
                            const Work& work, std::int64_t first, std::int64_t depth, std::int64_t segments) const {
  const Columns& columns = section.columns;
  const Buffers& buffers = work.buffers;
  const std::int64_t width = kernels_->width();
  const Panel<T>& last = panels.back();
  if (last.count % kernels_->lanes != 0) {  // columns that no segment fills are 0: the product reads them
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
template <class T>
void ColumnProduct<T>::pack_staged(const Section& section, ColumnRange range, const Work& work, std::int64_t first,
                                   std::int64_t depth, std::int64_t segments) const {
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
    std::fill(staged_end, staged_end + width, T{0});  // elements after the last segment are packed and must be numbers
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

template <class T>
PanelWidths ColumnProduct<T>::widths_of(ColumnRange range, std::span<const Panel<T>> panels) const {
  const auto narrow =
      std::find_if(panels.begin(), panels.end(), [&](const Panel<T>& p) { return p.vectors < kernels_->vectors; });
  if (narrow == panels.end()) return {kernels_->width()};
  return {kernels_->width(), narrow->column - range.first, narrow->vectors * kernels_->lanes};
}

template std::int64_t ColumnProduct<float>::staged_channels(const Section&) const;
template PanelWidths ColumnProduct<float>::widths_of(ColumnRange, std::span<const Panel<float>>) const;
template void ColumnProduct<float>::pack(const Section&, ColumnRange, std::span<const Panel<float>>, const Work&,
                                         std::int64_t, std::int64_t, std::int64_t) const;
template void ColumnProduct<float>::pack_staged(const Section&, ColumnRange, const Work&, std::int64_t, std::int64_t,
                                                std::int64_t) const;
template std::int64_t ColumnProduct<double>::staged_channels(const Section&) const;
template PanelWidths ColumnProduct<double>::widths_of(ColumnRange, std::span<const Panel<double>>) const;
template void ColumnProduct<double>::pack(const Section&, ColumnRange, std::span<const Panel<double>>, const Work&,
                                          std::int64_t, std::int64_t, std::int64_t) const;
template void ColumnProduct<double>::pack_staged(const Section&, ColumnRange, const Work&, std::int64_t, std::int64_t,
                                                 std::int64_t) const;

}  // namespace lamina::eigen
