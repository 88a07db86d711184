// c = a b for matrices of any orientation. A block computes bm x bn results (gemm_tile.h).
//
// Neighbouring threads load neighbours along the axis with stride 1: along m (or n), or along k.
// A product with few columns, such as a fully connected layer of one batch, takes a narrow tile and splits k into
// ranges: the large factor is then read once, by all multiprocessors. The ranges' sums are added in order by a second
// kernel.

#include "gemm.h"

#include <algorithm>
#include <type_traits>

#include "gemm_tile.h"
#include "kernels/common/elements.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int bk = 8;

/// The position of element `i` that a thread loads, in a tile with `extent` elements along its free axis.
template <bool along_k, int extent, int threads>
struct TileLoader {
  __device__ static int free(int i) {
    const int thread = static_cast<int>(threadIdx.x) + i * threads;
    return along_k ? thread / bk : thread % extent;
  }
  __device__ static int k(int i) {
    const int thread = static_cast<int>(threadIdx.x) + i * threads;
    return along_k ? thread % bk : thread / extent;
  }
};

/// Number of blocks per multiprocessor for which the compiler limits registers; 0: no limit. On compute capability 9.0
/// two blocks of the largest tile fit, with 128 registers a thread and no spills. On earlier capabilities the compiler
/// would spill some.
template <class Tile>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
constexpr int gemm_blocks_at_once = Tile::tm* Tile::tn == 64 ? 2 : 0;
#else
constexpr int gemm_blocks_at_once = 0;
#endif

template <class T, class Tile, bool a_along_k, bool b_along_k>
__global__ __launch_bounds__(Tile::threads, gemm_blocks_at_once<Tile>) void gemm_kernel(GemmProblem<T> p,
                                                                                        int tiles_per_split) {
  using BringA = TileLoader<a_along_k, Tile::bm, Tile::threads>;
  using BringB = TileLoader<b_along_k, Tile::bn, Tile::threads>;
  LAMINA_SHARED(typename Tile::Shared, shared);
  const int first_m = static_cast<int>(blockIdx.x) * Tile::bm, first_n = static_cast<int>(blockIdx.y) * Tile::bn;
  const int split = static_cast<int>(blockIdx.z), tiles = divide_up(p.k, bk), first = split * tiles_per_split;

  // Smaller tiles have a path without checks behind a branch: with the branch, the compiler keeps their loads before
  // the multiplications. For the largest tile it does so anyway, and there are no registers for two paths.
  const bool whole = Tile::tm * Tile::tn < 64 && first_m + Tile::bm <= p.m && first_n + Tile::bn <= p.n;
  T sums[Tile::tm][Tile::tn] = {};
  Tile::run(
      shared, first, min(first + tiles_per_split, tiles), sums,
      [&](int tile, T(&a)[Tile::loads_a], T(&b)[Tile::loads_b]) {
        const auto bring = [&](auto counts) {
#pragma unroll
          for (int i = 0; i < Tile::loads_a; ++i) {
            const int m = first_m + BringA::free(i), k = tile * bk + BringA::k(i);
            a[i] = counts(m < p.m && k < p.k) ? p.a[m * p.a_m + k * p.a_k] : T(0);
          }
#pragma unroll
          for (int i = 0; i < Tile::loads_b; ++i) {
            const int n = first_n + BringB::free(i), k = tile * bk + BringB::k(i);
            b[i] = counts(n < p.n && k < p.k) ? p.b[k * p.b_k + n * p.b_n] : T(0);
          }
        };
        if (whole && tile * bk + bk <= p.k)
          bring([](bool) { return true; });
        else
          bring([](bool inside) { return inside; });
      },
      [&](typename Tile::Shared& to, int half, const T(&a)[Tile::loads_a], const T(&b)[Tile::loads_b]) {
#pragma unroll
        for (int i = 0; i < Tile::loads_a; ++i) to.a[half][BringA::k(i) * to.a_pitch + BringA::free(i)] = a[i];
#pragma unroll
        for (int i = 0; i < Tile::loads_b; ++i) to.b[half][BringB::k(i) * to.b_pitch + BringB::free(i)] = b[i];
      });

  T* const c = p.c + (gridDim.z > 1 ? split * (std::int64_t{p.m} * p.n) : 0);
#pragma unroll
  for (int i = 0; i < Tile::tm; ++i) {
    const int m = first_m + Tile::row(i);
    if (m >= p.m) continue;
#pragma unroll
    for (int j = 0; j < Tile::tn; ++j) {
      const int n = first_n + Tile::column(j);
      if (n < p.n) put(c[m * p.c_m + n * p.c_n], sums[i][j], p.adds);
    }
  }
}

/// Adds the sums of all ranges into c. They are stored one range after another, each as n rows of m sums.
template <class T>
__global__ void gemm_sum_kernel(const T* partial, int splits, GemmProblem<T> p, View<T> results) {
  for_each_element(results, [&](int, std::int64_t i) {
    const std::int64_t n = i / p.m, m = i % p.m;
    T sum = partial[i];
    for (int split = 1; split < splits; ++split) sum += partial[split * results.pitch + i];
    put(p.c[m * p.c_m + n * p.c_n], sum, p.adds);
  });
}

/// Tile and ranges of k of a product.
struct GemmShape {
  bool narrow, large;
  int splits;
};

template <class T>
GemmShape shape_of(int m, int n, int k) {
  constexpr std::int64_t enough = 2 * large_device, least_tiles = 16;
  const auto blocks = [&](std::int64_t bm, std::int64_t bn) { return divide_up(m, bm) * divide_up(n, bn); };
  const bool narrow = n <= 32;
  const bool large = !narrow && std::is_same_v<T, float> && m > 64 && n > 64 && blocks(128, 128) >= enough / 2;
  const std::int64_t made = narrow ? blocks(128, 16) : large ? blocks(128, 128) : blocks(64, 64);
  const std::int64_t tiles = divide_up(k, bk);
  return {narrow, large,
          static_cast<int>(std::clamp<std::int64_t>(std::min(enough / made, tiles / least_tiles), 1, 64))};
}

template <class T, class Tile>
void run(Stream stream, const GemmProblem<T>& p, int splits) {
  const int tiles = divide_up(p.k, bk), per_split = divide_up(tiles, splits);
  const dim3 grid(static_cast<unsigned>(divide_up(p.m, Tile::bm)), static_cast<unsigned>(divide_up(p.n, Tile::bn)),
                  static_cast<unsigned>(splits));
  const bool a_along_k = p.a_k == 1, b_along_k = p.b_k == 1;
  const auto start = [&](const char* name, void (*kernel)(GemmProblem<T>, int)) {
    launch(kernel, name, grid, Tile::threads, 0, stream, p, per_split);
  };
  constexpr const char* name = "gemm_kernel";
  if (a_along_k) {
    b_along_k ? start(name, gemm_kernel<T, Tile, true, true>) : start(name, gemm_kernel<T, Tile, true, false>);
  } else {
    b_along_k ? start(name, gemm_kernel<T, Tile, false, true>) : start(name, gemm_kernel<T, Tile, false, false>);
  }
}

}  // namespace

template <class T>
std::size_t gemm_partial_bytes(int m, int n, int k) {
  const int splits = shape_of<T>(m, n, k).splits;
  return splits == 1
             ? 0
             : static_cast<std::size_t>(splits) * static_cast<std::size_t>(m) * static_cast<std::size_t>(n) * sizeof(T);
}

template <class T>
void gemm(Stream stream, const GemmProblem<T>& problem, T* partial) {
  const GemmShape shape = shape_of<T>(problem.m, problem.n, problem.k);
  GemmProblem<T> p = problem;
  if (shape.splits > 1) {
    p.c = partial;
    p.c_m = 1;
    p.c_n = p.m;
    p.adds = false;
  }
  if (shape.narrow) {
    run<T, GemmTile<T, 128, 16, bk, 4, 4>>(stream, p, shape.splits);
  } else {
    if constexpr (std::is_same_v<T, float>) {
      if (shape.large) {
        run<T, GemmTile<T, 128, 128, bk, 8, 8>>(stream, p, shape.splits);
      } else {
        run<T, GemmTile<T, 64, 64, bk, 8, 4>>(stream, p, shape.splits);
      }
    } else {
      run<T, GemmTile<T, 64, 64, bk, 4, 4>>(stream, p, shape.splits);
    }
  }
  if (shape.splits == 1) return;
  const View<T> results{partial, 1, 1, problem.n, problem.m, std::int64_t{problem.m} * problem.n};
  launch(LAMINA_KERNEL(gemm_sum_kernel<T>), grid_of_elements(results), elements_per_block, 0, stream, partial,
         shape.splits, problem, results);
}

#define LAMINA_INSTANTIATE(T)                                \
  template std::size_t gemm_partial_bytes<T>(int, int, int); \
  template void gemm(Stream, const GemmProblem<T>&, T*);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
