#pragma once
// Writing a convolution's sums from the registers of a block's threads.

#include <cstdint>

#include "conv_tiles.h"
#include "kernels/common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Whether packs of pixels may be read from, or written to, a tensor.
template <class T>
bool has_packs(const View<T>& view) {
  return view.plane() % widest<T> == 0 && view.pitch % widest<T> == 0 &&
         reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
}

/// Adds a bias, if there is one, to a thread's sums, and clamps them at 0 with `relu`. `channel` and `left` are the
/// block's first channel and the number of channels from there on.
template <class Tile, class T>
__device__ void finish_sums(T (&sums)[Tile::tm][Tile::tn], const T* bias, bool relu, int channel, int left) {
  if (bias != nullptr) {
#pragma unroll
    for (int i = 0; i < Tile::tm; ++i) {
      const T own = Tile::row(i) < left ? bias[channel + Tile::row(i)] : T(0);
#pragma unroll
      for (int j = 0; j < Tile::tn; ++j) sums[i][j] += own;
    }
  }
  if (relu) {
#pragma unroll
    for (int i = 0; i < Tile::tm; ++i)
#pragma unroll
      for (int j = 0; j < Tile::tn; ++j) sums[i][j] = clamp_at_zero(sums[i][j]);
  }
}

/// Writes a thread's results of a weight gradient, in packs of `width` weights. `left_m` and `left_n` say how many
/// filters and weights the block has.
template <class Tile, int width, bool adds, class T>
__device__ void write_weights(T* dw, int pitch, int left_m, int left_n, const T (&sums)[Tile::tm][Tile::tn]) {
#pragma unroll
  for (int i = 0; i < Tile::tm; ++i) {
    if (Tile::row(i) >= left_m) continue;
    T* const to = dw + std::int64_t{Tile::row(i)} * pitch;
#pragma unroll
    for (int j = 0; j < Tile::tn; j += width) {
      if (Tile::column(j) >= left_n) continue;
      Pack<T, width> pack;
#pragma unroll
      for (int k = 0; k < width; ++k) pack.v[k] = sums[i][j + k];
      put_pack(to + Tile::column(j), pack, adds);
    }
  }
}

/// Writes the results, and adds them to the old contents with `adds`. If `packs` says that they are contiguous and
/// aligned, it writes the widest packs.
template <class Tile, class T>
__device__ void write_weights(T* dw, int pitch, int left_m, int left_n, const T (&sums)[Tile::tm][Tile::tn], bool packs,
                              bool adds) {
  if (packs) {
    adds ? write_weights<Tile, widest<T>, true>(dw, pitch, left_m, left_n, sums)
         : write_weights<Tile, widest<T>, false>(dw, pitch, left_m, left_n, sums);
  } else {
    adds ? write_weights<Tile, 1, true>(dw, pitch, left_m, left_n, sums)
         : write_weights<Tile, 1, false>(dw, pitch, left_m, left_n, sums);
  }
}

}  // namespace lamina::LAMINA_CUDA_SPACE
