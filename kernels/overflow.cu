// Checks whether all gradients are finite, and adapts the loss scale (update.h).
//
// There are three launches. In the first, a thread clears the count of skips. In the second, warps read the gradients;
// each warp that read a gradient that is not finite adds 1 to the count. In the third, a thread adapts the scale.
// Per element: one read.

#include "kernels/common/packs.h"
#include "kernels/common/reduce.h"
#include "update.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

__global__ void overflow_begin_kernel(LossScaleState* state) { state->skips = 0; }

__global__ void overflow_kernel(Extent extent, const float* g, LossScaleState* state) {
  constexpr int width = widest<float>;
  bool finite = true;
  for_each_pack<width>(extent, [&](int, std::int64_t i) {
    const Pack<float, width> pack = load_pack<width>(g + i);
    for (const float value : pack.v) finite = finite && value - value == 0;  // infinity and NaN give NaN
  });
  if (reduce_warp(finite ? 0 : 1, Larger()) != 0 && threadIdx.x % lanes == 0) atomicAdd(&state->skips, 1U);
}

__global__ void overflow_end_kernel(LossScaleState* state, LossScaleLimits limits) {
  LossScaleState s = *state;
  const bool finite = s.skips == 0;
  s.inverse = 1 / static_cast<double>(s.scale);
  s.skips = finite ? 0 : 1;
  s.updates += finite ? 1 : 0;
  s.good = finite ? s.good + 1 : 0;
  if (!finite) s.scale = s.scale / 2 < limits.least ? limits.least : s.scale / 2;
  if (s.good >= limits.growth) {
    s.good = 0;
    if (s.scale <= limits.most / 2) s.scale *= 2;
  }
  *state = s;
}

}  // namespace

void check_overflow(Stream stream, const float* g, std::int64_t count, LossScaleState* state, LossScaleLimits limits) {
  if (count % widest<float> != 0 || reinterpret_cast<std::uintptr_t>(g) % 16 != 0)
    throw LaunchError("overflow_kernel: gradients are whole packs of 16 bytes, at multiples of 16");
  const Extent extent{1, count};
  dim3 grid = grid_of_packs(extent, widest<float>);
  grid.x = grid.x < 8 * large_device ? grid.x : 8 * large_device;
  launch(LAMINA_KERNEL(overflow_begin_kernel), 1, 1, 0, stream, state);
  if (count > 0) launch(LAMINA_KERNEL(overflow_kernel), grid, pack_threads, 0, stream, extent, g, state);
  launch(LAMINA_KERNEL(overflow_end_kernel), 1, 1, 0, stream, state, limits);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
