#pragma once
// The elements of a factor's tile that a thread loads from global to shared memory (gemm_tile.h).
//
// A factor is dense along one axis: k, the axis of the sum, or its free axis. A thread loads packs of
// `width` neighbours on the dense axis; neighbouring threads load neighbouring packs. It keeps to one position on the
// dense axis and takes every `rows`-th position on the other axis.

#include "kernels/common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// `extent` is the tile's extent along the free axis: Tile::bm or Tile::bn.
template <class Tile, bool along_k, int extent, int width>
struct TileLoader {
  static constexpr int per_row = (along_k ? Tile::bk : extent) / width;  ///< packs in a row of the dense axis
  static constexpr int rows = Tile::threads / per_row;                   ///< rows that the block loads at once
  static constexpr int passes = extent * Tile::bk / width / Tile::threads;
  static_assert(Tile::threads % per_row == 0 && passes * rows * per_row * width == extent * Tile::bk);

  /// The thread's first element on the dense axis, and its row on the other axis in a pass.
  __device__ static int dense() { return static_cast<int>(threadIdx.x) % per_row * width; }
  __device__ static int row(int pass) { return static_cast<int>(threadIdx.x) / per_row + pass * rows; }
  /// The coordinates k and free of a pack's first element.
  __device__ static int k(int pass) { return along_k ? dense() : row(pass); }
  __device__ static int free(int pass) { return along_k ? row(pass) : dense(); }

  /// Stores to one half of shared memory, where neighbours along the free axis are neighbours.
  template <class T>
  __device__ static void store(T* half, int pitch, const T (&values)[passes * width]) {
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
      T* const to = half + k(pass) * pitch + free(pass);
      if constexpr (along_k) {
#pragma unroll
        for (int j = 0; j < width; ++j) to[j * pitch] = values[pass * width + j];
      } else {
        Pack<T, width> pack;
#pragma unroll
        for (int j = 0; j < width; ++j) pack.v[j] = values[pass * width + j];
        store_pack(to, pack);
      }
    }
  }
};

/// Loads a pack: values[pass * width ...] = the pack at `from`.
template <int width, class T, int count>
__device__ void load_tile_pack(const T* from, int pass, T (&values)[count]) {
  const Pack<T, width> pack = load_pack<width>(from);
#pragma unroll
  for (int j = 0; j < width; ++j) values[pass * width + j] = pack.v[j];
}

/// Loads a pack if it `counts`, else zeros.
template <int width, class T, int count>
__device__ void bring_pack_if(bool counts, const T* from, int pass, T (&values)[count]) {
  if (counts) return load_tile_pack<width>(from, pass, values);
#pragma unroll
  for (int j = 0; j < width; ++j) values[pass * width + j] = T(0);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
