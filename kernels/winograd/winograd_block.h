#pragma once
// A block's products at all 36 positions of Winograd's F(4x4, 3x3): 32 rows x 32 columns for each position (f64: 16 x
// 16), in registers of 12 warps. Each warp owns 3 positions.

#include "kernels/common/packs.h"
#include "winograd_4x4.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// How a block is partitioned. Multiples of `width` allow accesses of 16 bytes.
template <class T>
struct WinogradBlock {
  static constexpr int width = widest<T>;
  static constexpr int lane_rows = 4, lane_columns = 8;  // rows and columns of lanes in a warp
  static constexpr int rows = lane_rows * 2 * width;     // rows of a block; each thread has two packs of them
  static constexpr int columns = lane_columns * width;   // columns of a block; each thread has one pack of them
  static constexpr int warps = 12, threads = warps * 32;
  static constexpr int warp_positions = winograd_positions / warps;
  static constexpr int slots = 2 * lane_rows;  // rows whose positions meet at once
  static_assert(winograd_positions % warps == 0 && slots * columns <= threads, "too few threads");
};

template <class T>
using WinogradSums = T[WinogradBlock<T>::warp_positions][2 * WinogradBlock<T>::width][WinogradBlock<T>::width];

/// The position of a thread in its warp's rows x columns. Lanes 0 and 1 share rows, lanes 0 and 2 share columns, so the
/// packs of eight lanes come from few addresses.
struct WinogradLane {
  int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int row, column;

  __device__ WinogradLane() : row((lane >> 1 & 1) + (lane >> 4) * 2), column((lane & 1) + (lane >> 2 & 3) * 2) {}
};

/// Adds `depth` products to the sums. The factors are in shared memory: depth, position, row or column.
template <int depth, class T>
__device__ void winograd_multiply(const WinogradLane& place, const T* a, const T* b, WinogradSums<T>& sums) {
  using Block = WinogradBlock<T>;
  constexpr int width = Block::width;
  a += place.warp * Block::warp_positions * Block::rows + place.row * width;
  b += place.warp * Block::warp_positions * Block::columns + place.column * width;
#pragma unroll 1  // no registers are left to unroll
  for (int i = 0; i < depth; ++i) {
#pragma unroll
    for (int p = 0; p < Block::warp_positions; ++p) {
      const T* const u = a + p * Block::rows;
      const Pack<T, width> low = load_pack<width>(u), high = load_pack<width>(u + Block::lane_rows * width);
      const Pack<T, width> v = load_pack<width>(b + p * Block::columns);
#pragma unroll
      for (int k = 0; k < width; ++k) {
#pragma unroll
        for (int t = 0; t < width; ++t) {
          sums[p][k][t] += low.v[k] * v.v[t];
          sums[p][width + k][t] += high.v[k] * v.v[t];
        }
      }
    }
    a += winograd_positions * Block::rows;
    b += winograd_positions * Block::columns;
  }
}

/// Collects the positions of `slots` rows in shared memory, in the order position, slot, column. These are the rows
/// `part` and `part` + 1 of each thread.
template <class T>
__device__ void winograd_meet(const WinogradLane& place, const WinogradSums<T>& sums, int part, T* shared) {
  using Block = WinogradBlock<T>;
  constexpr int width = Block::width;
#pragma unroll
  for (int p = 0; p < Block::warp_positions; ++p) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      Pack<T, width> pack;
      for (int t = 0; t < width; ++t) pack.v[t] = sums[p][part + i][t];
      const int position = place.warp * Block::warp_positions + p;
      store_pack(
          shared + (position * Block::slots + i * Block::lane_rows + place.row) * Block::columns + place.column * width,
          pack);
    }
  }
}

/// The row of the block that is in a slot.
template <class T>
__device__ int winograd_row(int part, int slot) {
  using Block = WinogradBlock<T>;
  part += slot / Block::lane_rows;  // number among the thread's rows
  return part / Block::width * Block::lane_rows * Block::width + slot % Block::lane_rows * Block::width +
         part % Block::width;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
