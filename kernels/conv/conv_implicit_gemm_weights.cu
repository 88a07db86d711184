// The weight gradient as a product without a column matrix:
//
//   dw[m, (c,r,s)] = sum over pixels (n,p,q) of dy[n,m,p,q] * x[n, c, p stride - pad + r dilation, q likewise]
//
// A block computes bm filters m by bn weights (c,r,s) (gemm_tile.h). A thread keeps to one pixel of each tile while it
// loads elements of both factors. Positions are in shared memory: the positions of a tile's pixels are computed two
// tiles ahead, those of the block's weights once. Neighbouring threads load neighbouring pixels.
//
// Filters by weights give few blocks, and there are many pixels. So the pixels are split into ranges, one per block.
// The sums go to `partial` and are added in order by a second kernel (conv_ranges.h).

#include "conv_implicit_gemm.h"
#include "conv_ranges.h"
#include "conv_results.h"
#include "kernels/common/fast_divide.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int pixels_per_tile = 16;

template <class T>
struct WeightsProduct {
  ConvGeometry g;
  int filters, channels, weights;  ///< filters and channels of a group; weights of a filter
  View<const T> x;
  Masked<T> dy;
  T* dw;  ///< result, or the partial sums
  bool adds;
  bool packs;  ///< packs of widest<T> weights are contiguous in dw and aligned to 16 bytes
  int pixels, tiles_per_split, splits;
  FastDivide by_columns, by_rows, by_taps, by_row_taps;
};

/// The position in x of a weight's factor, relative to the pixel's position.
struct alignas(16) WeightPlace {
  int offset, row, column;
};

/// The offsets of a pixel in the first channels of dy, mask and x, and its row and column of x for a tap at 0. If the
/// pixel is out of range, the row is far outside.
struct PixelPlace {
  std::int64_t dy, mask, x;
  int row, column;
};
constexpr int nowhere = -(1 << 29);

template <class T>
__device__ PixelPlace place_of(const WeightsProduct<T>& product, int group, int pixel) {
  if (pixel >= product.pixels) return {0, 0, 0, nowhere, 0};
  const Divided row = divide(static_cast<unsigned>(pixel), product.by_columns);
  const Divided image = divide(row.quotient, product.by_rows);
  const int n = static_cast<int>(image.quotient);
  const int p = static_cast<int>(image.remainder), q = static_cast<int>(row.remainder);
  const int x_row = p * product.g.stride_h - product.g.pad_h, x_column = q * product.g.stride_w - product.g.pad_w;
  const View<const T>&dy = product.dy.dy, &x = product.x;
  const std::int64_t at = group * product.filters * dy.plane() + std::int64_t{p} * dy.w + q;
  return {n * dy.pitch + at, n * product.dy.mask.pitch + at,
          n * x.pitch + group * product.channels * x.plane() + std::int64_t{x_row} * x.w + x_column, x_row, x_column};
}

template <class T>
__device__ WeightPlace weight_at(const WeightsProduct<T>& product, int weight) {
  if (weight >= product.weights) return {0, nowhere, 0};
  const Divided channel = divide(static_cast<unsigned>(weight), product.by_taps);
  const Divided tap = divide(channel.remainder, product.by_row_taps);
  const int row = static_cast<int>(tap.quotient) * product.g.dilation_h,
            column = static_cast<int>(tap.remainder) * product.g.dilation_w;
  return {static_cast<int>(channel.quotient * product.x.plane()) + row * product.x.w + column, row, column};
}

/// Number of blocks per multiprocessor for which the compiler limits registers.
template <class Tile>
constexpr int blocks_at_once = Tile::threads == 256       ? 2
                               : Tile::tm* Tile::tn == 64 ? 3
                                                          : 5;

template <class T, class Tile, bool masked>
__global__ __launch_bounds__(Tile::threads,
                             blocks_at_once<Tile>) void conv_weights_product_kernel(WeightsProduct<T> product) {
  LAMINA_SHARED(typename Tile::Shared, shared);
  LAMINA_SHARED(WeightPlace[Tile::bn], weights);
  LAMINA_SHARED(PixelPlace[2][Tile::bk], pixels);  // positions of a tile's pixels; dy, mask and x are the distances to
                                                   // the next tile's positions
  const int group = static_cast<int>(blockIdx.z) / product.splits,
            split = static_cast<int>(blockIdx.z) % product.splits;
  const int first_filter = static_cast<int>(blockIdx.y) * Tile::bm,
            first_weight = static_cast<int>(blockIdx.x) * Tile::bn;
  const int thread = static_cast<int>(threadIdx.x);
  for (int j = thread; j < Tile::bn; j += Tile::threads) weights[j] = weight_at(product, first_weight + j);

  constexpr int rows = Tile::threads / Tile::bk;
  static_assert(Tile::threads % Tile::bk == 0);
  const int own_k = thread % Tile::bk, own_row = thread / Tile::bk;
  const int tiles = divide_up(product.pixels, Tile::bk), first_tile = split * product.tiles_per_split;
  const int filters = product.filters - first_filter - own_row;  // filters of the block, from own_row on
  const unsigned plane = static_cast<unsigned>(product.dy.dy.h) * static_cast<unsigned>(product.dy.dy.w);

  // The addresses that the next step loads from. The loop carries them in registers (conv_gather.h).
  const PixelPlace first = place_of(product, group, first_tile * Tile::bk + own_k);
  const std::int64_t first_plane = std::int64_t{min(first_filter + own_row, product.filters - 1)} * plane;
  const T* dy = product.dy.dy.data + (first.dy + first_plane);
  const T* mask = masked ? product.dy.mask.data + (first.mask + first_plane) : nullptr;
  const T* x = product.x.data + first.x;

  T sums[Tile::tm][Tile::tn] = {};
  Tile::run(
      shared, first_tile, min(first_tile + product.tiles_per_split, tiles), sums,
      [&](int tile, T(&a)[Tile::loads_a], T(&b)[Tile::loads_b]) {
        const PixelPlace pixel = pixels[tile & 1][own_k];
        const int left = pixel.row == nowhere ? 0 : filters;
#pragma unroll
        for (int i = 0; i < Tile::loads_a; ++i)
          a[i] = bring<masked>(dy, mask, std::uint64_t{plane} * (i * rows), i * rows < left);
#pragma unroll
        for (int i = 0; i < Tile::loads_b; ++i) {
          const WeightPlace weight = weights[own_row + i * rows];
          const bool counts =
              (static_cast<unsigned>(pixel.row + weight.row) < static_cast<unsigned>(product.x.h)) &
              (static_cast<unsigned>(pixel.column + weight.column) < static_cast<unsigned>(product.x.w));
          b[i] = counts ? x[weight.offset] : T(0);
        }
        dy += pixel.dy;
        if constexpr (masked) mask += pixel.mask;
        x += pixel.x;
      },
      [&](typename Tile::Shared& to, int half, const T(&a)[Tile::loads_a], const T(&b)[Tile::loads_b]) {
#pragma unroll
        for (int i = 0; i < Tile::loads_a; ++i) to.a[half][own_k * to.a_pitch + own_row + i * rows] = a[i];
#pragma unroll
        for (int i = 0; i < Tile::loads_b; ++i) to.b[half][own_k * to.b_pitch + own_row + i * rows] = b[i];
      },
      [&](int tile) {
        if (thread >= Tile::bk) return;
        const PixelPlace here = place_of(product, group, tile * Tile::bk + thread),
                         next = place_of(product, group, (tile + 1) * Tile::bk + thread);
        pixels[tile & 1][thread] = {next.dy - here.dy, next.mask - here.mask, next.x - here.x, here.row, here.column};
      });

  const std::int64_t all = std::int64_t{product.dy.dy.c} * product.weights;
  T* const dw = product.dw + split * all + (std::int64_t{group} * product.filters + first_filter) * product.weights +
                first_weight;
  const int left_m = product.filters - first_filter, left_n = product.weights - first_weight;
  write_weights<Tile>(dw, product.weights, left_m, left_n, sums, product.packs, product.adds);
}

constexpr ConvTileCost weights_costs[3] = {{ConvTile::tile_128x128, 128, 128, 16, 2500, 1480, 2},
                                           {ConvTile::tile_64x128, 64, 128, 16, 1331, 915, 3},
                                           {ConvTile::tile_64x64, 64, 64, 16, 737, 690, 5}};

template <class T>
ConvSchedule schedule_of(const ConvGeometry& g, const View<const T>& x, const View<const T>& dy, ConvTile tile,
                         int splits) {
  const std::int64_t weights = std::int64_t{x.c / g.groups} * g.kernel_h * g.kernel_w;
  return conv_schedule_for({dy.c / g.groups, weights, g.groups, dy.n * dy.plane(), 512, 256}, weights_costs, tile,
                           splits);
}

}  // namespace

std::int64_t conv_implicit_gemm_weights_cycles(const ConvGeometry& g, const View<const float>& x,
                                               const View<const float>& dy) {
  return schedule_of(g, x, dy, ConvTile::automatic, 0).cycles;
}

template <class T>
std::size_t ConvImplicitGemm::backward_weights_bytes(const ConvGeometry& g, const View<const T>& x,
                                                     const View<const T>& dy, int splits) {
  splits = schedule_of(g, x, dy, ConvTile::automatic, splits).ranges;
  if (splits == 1) return 0;
  const std::size_t weights = static_cast<std::size_t>(dy.c) * static_cast<std::size_t>(x.c / g.groups) *
                              static_cast<std::size_t>(g.kernel_h) * static_cast<std::size_t>(g.kernel_w);
  return static_cast<std::size_t>(splits) * weights * sizeof(T);
}

template <class T>
void ConvImplicitGemm::backward_weights(Stream stream, const ConvGeometry& g, View<const T> x, const Masked<T>& dy,
                                        T* dw, T* partial, bool adds, int splits, ConvTile tile) {
  const ConvSchedule cut = schedule_of(g, x, dy.dy, tile, splits);
  splits = cut.ranges;
  const int row_taps = g.kernel_w, taps = g.kernel_h * g.kernel_w;
  const int weights = x.c / g.groups * taps;
  T* const made = splits == 1 ? dw : partial;
  const bool packs = weights % widest<T> == 0 && reinterpret_cast<std::uintptr_t>(made) % 16 == 0;
  WeightsProduct<T> product{g,
                            dy.dy.c / g.groups,
                            x.c / g.groups,
                            weights,
                            x,
                            dy,
                            made,
                            adds && splits == 1,
                            packs,
                            static_cast<int>(dy.dy.n * dy.dy.plane()),
                            0,
                            splits,
                            FastDivide(dy.dy.w),
                            FastDivide(dy.dy.h),
                            FastDivide(taps),
                            FastDivide(row_taps)};
  const int tiles = divide_up(product.pixels, pixels_per_tile);
  product.tiles_per_split = divide_up(tiles, splits);
  with_conv_tile<T, pixels_per_tile>(cut.tile, [&](auto chosen) {
    using Tile = decltype(chosen);
    const dim3 grid(static_cast<unsigned>(divide_up(weights, Tile::bn)),
                    static_cast<unsigned>(divide_up(product.filters, Tile::bm)),
                    static_cast<unsigned>(g.groups * splits));
    const auto start = [&](void (*kernel)(WeightsProduct<T>)) {
      launch(kernel, "conv_weights_product_kernel", grid, Tile::threads, 0, stream, product);
    };
    dy.mask.data == nullptr ? start(conv_weights_product_kernel<T, Tile, false>)
                            : start(conv_weights_product_kernel<T, Tile, true>);
  });
  conv_add_weight_ranges(stream, partial, splits, g.groups, product.filters * weights, dw, adds);
}

#define LAMINA_INSTANTIATE(T)                                                                                        \
  template std::size_t ConvImplicitGemm::backward_weights_bytes(const ConvGeometry&, const View<const T>&,           \
                                                                const View<const T>&, int);                          \
  template void ConvImplicitGemm::backward_weights(Stream, const ConvGeometry&, View<const T>, const Masked<T>&, T*, \
                                                   T*, bool, int, ConvTile);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
