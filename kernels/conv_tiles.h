#pragma once
// Which tile a convolution's product takes.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "conv_implicit_gemm.h"
#include "gemm_tile.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Blocks of the three tiles, and the multiply-adds per element that each reads from shared memory, decide: the largest
/// tile that still gives every multiprocessor of a large device a block, else the smallest.
inline ConvTile conv_tile_for(std::int64_t results, std::int64_t pixels, std::int64_t groups) {
  const auto blocks = [&](std::int64_t bm, std::int64_t bn) {
    return (results + bm - 1) / bm * ((pixels + bn - 1) / bn) * groups;
  };
  if (results > 64 && blocks(128, 128) >= large_device) return ConvTile::tile_128x128;
  if (blocks(64, 128) >= large_device) return ConvTile::tile_64x128;
  return ConvTile::tile_64x64;
}

/// Calls body(GemmTile{}) with the tile that was asked for or that the rule picks.
template <class T, int bk, class Body>
void with_conv_tile(ConvTile tile, std::int64_t results, std::int64_t pixels, std::int64_t groups, Body body) {
  if constexpr (std::is_same_v<T, double>) {
    body(GemmTile<double, 64, 64, bk, 4, 4>());
  } else {
    switch (tile == ConvTile::automatic ? conv_tile_for(results, pixels, groups) : tile) {
      case ConvTile::tile_128x128: return body(GemmTile<float, 128, 128, bk, 8, 8>());
      case ConvTile::tile_64x128: return body(GemmTile<float, 64, 128, bk, 8, 8>());
      default: return body(GemmTile<float, 64, 64, bk, 8, 4>());
    }
  }
}

}  // namespace lamina::LAMINA_CUDA_SPACE
