// The cost of Winograd's F(4x4, 3x3) on a large device, by the model of docs/algorithms/winograd_4x4.md, in f32.

#include "conv_winograd_4x4.h"
#include "kernels/common/launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

std::int64_t winograd_4x4_cycles(const WinogradFilters& f, int images, int h, int w) {
  constexpr std::int64_t block_filters = 32, block_tiles = 32, step_channels = 2;
  constexpr std::int64_t step = 1014, ends = 5500;  // cycles of a block, alone on its multiprocessor
  const auto units = [](std::int64_t count, std::int64_t unit) { return divide_up(count, unit); };
  const std::int64_t tiles = images * units(h, 4) * units(w, 4);
  const std::int64_t blocks = units(tiles, block_tiles) * units(f.outputs, block_filters) * f.groups;
  return units(blocks, large_device) * (units(f.inputs, step_channels) * step + ends);
}

std::int64_t winograd_4x4_filter_cycles(const WinogradFilters& f) {
  // cycles of a launch; bytes per cycle of a multiprocessor
  constexpr std::int64_t launch = 2000, bytes_per_cycle = 22;
  constexpr std::int64_t bytes = (9 + 36) * 4;  // bytes of a filter's channel, read and written
  return launch + std::int64_t{f.groups} * f.outputs * f.inputs * bytes / (bytes_per_cycle * large_device);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
