#pragma once
// The core of every product: a block's tile of C from tiles of A and B in shared memory, a thread's share in
// registers.
//
// clang-format off
//             B  bk x bn, twice       A thread holds tm x tn results, as tm / V by tn / V small squares of V x V,
//            +------------------+     V elements being 16 bytes: the squares of neighbouring threads are neighbours,
//            +------------------+     so that the 16-byte reads of a warp have no bank conflicts.
//    A       +------------------+
//  bk x bm   |    C  bm x bn    |     While tile i is multiplied, tile i + 1 is on its way from global memory to
//   twice    |     threads:     |     registers. It goes to the other half of shared memory; one barrier later
//            | (bm/tm) x (bn/tn)|     the halves swap roles.
//            +------------------+
// clang-format on
//
// Per element of k a thread reads tm + tn elements from shared memory for tm tn multiply-adds.

#include "kernels/common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {

template <class T, int Bm, int Bn, int Bk, int Tm, int Tn>
struct GemmTile {
  static constexpr int bm = Bm, bn = Bn, bk = Bk, tm = Tm, tn = Tn;
  static constexpr int width = widest<T>;
  static constexpr int threads_m = bm / tm, threads_n = bn / tn, threads = threads_m * threads_n;
  static constexpr int loads_a = bm * bk / threads, loads_b = bn * bk / threads;  ///< elements that a thread loads
  static_assert(bm % tm == 0 && bn % tn == 0 && tm % width == 0 && tn % width == 0);
  static_assert(bm * bk % threads == 0 && bn * bk % threads == 0);

  struct alignas(16) Shared {
    static constexpr int a_pitch = bm + width, b_pitch = bn + width;  ///< elements from one k to the next
    T a[2][bk * a_pitch], b[2][bk * b_pitch];
  };

  /// The row (or column) of the tile that is row number `i` of the thread.
  __device__ static int row(int i) {
    return i / width * (bm / (tm / width)) + static_cast<int>(threadIdx.x) / threads_n * width + i % width;
  }
  /// row(i) = row(0) + row_step(i)
  __device__ static constexpr int row_step(int i) { return i / width * (bm / (tm / width)) + i % width; }
  __device__ static int column(int j) {
    return j / width * (bn / (tn / width)) + static_cast<int>(threadIdx.x) % threads_n * width + j % width;
  }

  /// Adds the product A B of one half of shared memory to the sums.
  __device__ static void multiply(const Shared& shared, int half, T (&sums)[tm][tn]) {
#pragma unroll
    for (int k = 0; k < bk; ++k) {
      Pack<T, width> a[tm / width], b[tn / width];
#pragma unroll
      for (int i = 0; i < tm / width; ++i)
        a[i] = load_pack<width>(&shared.a[half][k * Shared::a_pitch + row(i * width)]);
#pragma unroll
      for (int j = 0; j < tn / width; ++j)
        b[j] = load_pack<width>(&shared.b[half][k * Shared::b_pitch + column(j * width)]);
#pragma unroll
      for (int i = 0; i < tm; ++i)
#pragma unroll
        for (int j = 0; j < tn; ++j) sums[i][j] = fma(a[i / width].v[i % width], b[j / width].v[j % width], sums[i][j]);
    }
  }

  /// The whole product over k tiles [first, last). `load(tile, a, b)` loads a tile's elements to registers and
  /// `store(shared, half, a, b)` stores them; `ahead(tile)` may prepare what a later load needs. Every thread of
  /// the block calls it.
  template <class Load, class Store, class Ahead>
  __device__ static void run(Shared& shared, int first, int last, T (&sums)[tm][tn], Load load, Store store,
                             Ahead ahead) {
    T a[loads_a], b[loads_b];
    if (first >= last) return;
    ahead(first);
    ahead(first + 1);
    __syncthreads();
    load(first, a, b);
    store(shared, 0, a, b);
    __syncthreads();
    for (int tile = first, half = 0; tile < last; ++tile, half ^= 1) {
      const bool more = tile + 1 < last;
      if (more) {
        load(tile + 1, a, b);
        ahead(tile + 2);
      }
      multiply(shared, half, sums);
      if (more) store(shared, half ^ 1, a, b);
      __syncthreads();
    }
  }

  /// The same for a `load` that needs no preparation. `load` is also called for tile `last`; what it loads then is
  /// stored and never read. There is no branch around the loads: with a branch, the compiler would move them after the
  /// multiplications, and every step would wait for them there.
  template <class Load, class Store>
  __device__ static void run(Shared& shared, int first, int last, T (&sums)[tm][tn], Load load, Store store) {
    T a[loads_a] = {}, b[loads_b] = {};
    if (first >= last) return;
    load(first, a, b);
    store(shared, 0, a, b);
    __syncthreads();
    for (int tile = first, half = 0; tile < last; ++tile, half ^= 1) {
      load(tile + 1, a, b);
      multiply(shared, half, sums);
      store(shared, half ^ 1, a, b);
      __syncthreads();
    }
  }
};

}  // namespace lamina::LAMINA_CUDA_SPACE
