#pragma once
// The tiles of a convolution's product, and conditional loads of its elements.

#include <cstdint>
#include <type_traits>

#include "conv_schedule.h"
#include "kernels/gemm/gemm_tile.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Element `at` of a tensor if it `counts`, else 0. The loads of the element and of the mask are issued at once, so no
/// branch waits for the mask.
template <bool masked, class T>
__device__ T bring(const T* in, const T* mask, std::uint64_t at, bool counts) {
  const T value = counts ? in[at] : T(0);
  if constexpr (!masked) return value;
  const T sign = counts ? mask[at] : T(0);
  return sign > T(0) ? value : T(0);
}

/// Number of blocks per multiprocessor for which the compiler limits registers.
template <class Tile>
constexpr int conv_blocks_at_once = Tile::threads == 256       ? 2
                                    : Tile::tm* Tile::tn == 64 ? 3
                                                               : 4;

/// Calls body(GemmTile{}) with the type of a tile. The smallest tile has steps of 16, so that its few threads have
/// enough work between two barriers. f64 has one tile.
template <class T, int bk, class Body>
void with_conv_tile(ConvTile tile, Body body) {
  if constexpr (std::is_same_v<T, double>) {
    body(GemmTile<double, 64, 64, bk, 4, 4>());
  } else {
    switch (tile) {
      case ConvTile::tile_128x128: return body(GemmTile<float, 128, 128, bk, 8, 8>());
      case ConvTile::tile_64x128: return body(GemmTile<float, 64, 128, bk, 8, 8>());
      default: return body(GemmTile<float, 64, 64, 16, 8, 4>());
    }
  }
}

}  // namespace lamina::LAMINA_CUDA_SPACE
