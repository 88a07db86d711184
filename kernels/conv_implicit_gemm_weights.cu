// The weight gradient as a product without a column matrix:
//
//   dw[m, (c,r,s)] = sum over pixels (n,p,q) of dy[n,m,p,q] * x[n, c, p stride - pad + r dilation, q likewise]
//
// A block makes bm filters m by bn weights (c,r,s) (gemm_tile.h). A thread keeps to one pixel of each tile while it
// brings elements of both factors: where the pixel lies is worked out once per tile, where the block's weights lie once
// per block, in shared memory. Neighbouring threads bring neighbouring pixels.
//
// Filters by weights are few blocks and pixels many: the pixels are cut into ranges, each a block's, whose sums go to
// `partial` and are added in order by a second kernel.

#include "conv_implicit_gemm.h"
#include "conv_tiles.h"
#include "elements.h"
#include "fast_divide.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int pixels_per_tile = 16;

template <class T>
struct WeightsProduct {
  ConvGeometry g;
  int filters, channels;  ///< of a group
  View<const T> x;
  Masked<T> dy;
  T* dw;  ///< or the partial sums
  bool adds;
  int pixels, tiles_per_split, splits;
  FastDivide by_columns, by_rows, by_taps, by_row_taps;
};

/// Where a weight's factor lies in x, relative to a pixel's.
struct WeightPlace {
  int offset, row, column;
};

template <class T, class Tile>
__global__ __launch_bounds__(Tile::threads) void conv_weights_product_kernel(WeightsProduct<T> product) {
  __shared__ typename Tile::Shared shared;
  __shared__ WeightPlace weights[Tile::bn];
  const ConvGeometry& g = product.g;
  const int group = static_cast<int>(blockIdx.z) / product.splits,
            split = static_cast<int>(blockIdx.z) % product.splits;
  const int first_filter = static_cast<int>(blockIdx.y) * Tile::bm,
            first_weight = static_cast<int>(blockIdx.x) * Tile::bn;
  const int weight_count = product.channels * g.kernel_h * g.kernel_w;
  const int thread = static_cast<int>(threadIdx.x);

  for (int j = thread; j < Tile::bn; j += Tile::threads) {
    const Divided channel = divide(static_cast<unsigned>(min(first_weight + j, weight_count - 1)), product.by_taps);
    const Divided tap = divide(channel.remainder, product.by_row_taps);
    const int row = static_cast<int>(tap.quotient) * g.dilation_h,
              column = static_cast<int>(tap.remainder) * g.dilation_w;
    weights[j] = {static_cast<int>(channel.quotient * product.x.plane()) + row * product.x.w + column, row, column};
  }

  constexpr int rows = Tile::threads / Tile::bk;
  static_assert(Tile::threads % Tile::bk == 0);
  const int own_k = thread % Tile::bk, own_row = thread / Tile::bk;
  const int tiles = (product.pixels + Tile::bk - 1) / Tile::bk, first_tile = split * product.tiles_per_split;
  const std::int64_t plane = product.dy.dy.plane();

  T sums[Tile::tm][Tile::tn] = {};
  Tile::run(
      shared, first_tile, min(first_tile + product.tiles_per_split, tiles), sums,
      [&](int tile, T(&a)[Tile::loads_a], T(&b)[Tile::loads_b]) {
        const int pixel = tile * Tile::bk + own_k;
        const bool inside = pixel < product.pixels;
        const Divided row = divide(static_cast<unsigned>(inside ? pixel : 0), product.by_columns);
        const Divided image = divide(row.quotient, product.by_rows);
        const int n = static_cast<int>(image.quotient);
        const int p = static_cast<int>(image.remainder), q = static_cast<int>(row.remainder);
        const std::int64_t at = std::int64_t{p} * product.dy.dy.w + q;
        const T* const dy = product.dy.dy.at(n, group * product.filters) + at;
        const T* const mask =
            product.dy.mask.data == nullptr ? nullptr : product.dy.mask.at(n, group * product.filters) + at;
#pragma unroll
        for (int i = 0; i < Tile::loads_a; ++i) {
          const int m = first_filter + own_row + i * rows;
          const bool counts = inside && m < product.filters && (mask == nullptr || mask[m * plane] > T(0));
          a[i] = counts ? dy[m * plane] : T(0);
        }
        const int x_row = p * g.stride_h - g.pad_h, x_column = q * g.stride_w - g.pad_w;
        const T* const x = product.x.at(n, group * product.channels);
        const std::int64_t x_place = std::int64_t{x_row} * product.x.w + x_column;
#pragma unroll
        for (int i = 0; i < Tile::loads_b; ++i) {
          const int j = own_row + i * rows;
          const WeightPlace place = weights[j];
          const bool counts = inside && first_weight + j < weight_count &&
                              static_cast<unsigned>(x_row + place.row) < static_cast<unsigned>(product.x.h) &&
                              static_cast<unsigned>(x_column + place.column) < static_cast<unsigned>(product.x.w);
          b[i] = counts ? x[x_place + place.offset] : T(0);
        }
      },
      [&](typename Tile::Shared& to, int half, const T(&a)[Tile::loads_a], const T(&b)[Tile::loads_b]) {
#pragma unroll
        for (int i = 0; i < Tile::loads_a; ++i) to.a[half][own_k * to.a_pitch + own_row + i * rows] = a[i];
#pragma unroll
        for (int i = 0; i < Tile::loads_b; ++i) to.b[half][own_k * to.b_pitch + own_row + i * rows] = b[i];
      },
      [](int) {});

  const std::int64_t all = std::int64_t{product.dy.dy.c} * weight_count;
  T* const dw = product.dw + split * all + std::int64_t{group} * product.filters * weight_count;
#pragma unroll
  for (int i = 0; i < Tile::tm; ++i) {
    const int m = first_filter + Tile::row(i);
    if (m >= product.filters) continue;
#pragma unroll
    for (int j = 0; j < Tile::tn; ++j) {
      const int weight = first_weight + Tile::column(j);
      if (weight < weight_count) put(dw[std::int64_t{m} * weight_count + weight], sums[i][j], product.adds);
    }
  }
}

template <class T>
__global__ void conv_weights_sum_kernel(const T* partial, int splits, View<T> dw, bool adds) {
  for_each_element(dw, [&](int, std::int64_t i) {
    T sum = partial[i];
    for (int split = 1; split < splits; ++split) sum += partial[split * dw.pitch + i];
    put(dw.data[i], sum, adds);
  });
}

constexpr ConvTileCost weights_costs[3] = {{ConvTile::tile_128x128, 128, 128, 16, 2930, 3700, 1},
                                           {ConvTile::tile_64x128, 64, 128, 16, 1830, 2200, 3},
                                           {ConvTile::tile_64x64, 64, 64, 16, 1010, 1350, 5}};

template <class T>
ConvCut cut_of(const ConvGeometry& g, const View<const T>& x, const View<const T>& dy, ConvTile tile, int splits) {
  const std::int64_t weights = std::int64_t{x.c / g.groups} * g.kernel_h * g.kernel_w;
  return conv_cut_for({dy.c / g.groups, weights, g.groups, dy.n * dy.plane(), 512, 256}, weights_costs, tile, splits);
}

}  // namespace

template <class T>
std::size_t conv_implicit_gemm_partial_bytes(const ConvGeometry& g, const View<const T>& x, const View<const T>& dy,
                                             int splits) {
  splits = cut_of(g, x, dy, ConvTile::automatic, splits).ranges;
  if (splits == 1) return 0;
  const std::size_t weights = static_cast<std::size_t>(dy.c) * static_cast<std::size_t>(x.c / g.groups) *
                              static_cast<std::size_t>(g.kernel_h) * static_cast<std::size_t>(g.kernel_w);
  return static_cast<std::size_t>(splits) * weights * sizeof(T);
}

template <class T>
void conv_implicit_gemm_backward_weights(Stream stream, const ConvGeometry& g, View<const T> x, const Masked<T>& dy,
                                         T* dw, T* partial, bool adds, int splits, ConvTile tile) {
  const ConvCut cut = cut_of(g, x, dy.dy, tile, splits);
  splits = cut.ranges;
  const int row_taps = g.kernel_w, taps = g.kernel_h * g.kernel_w;
  WeightsProduct<T> product{g,
                            dy.dy.c / g.groups,
                            x.c / g.groups,
                            x,
                            dy,
                            splits == 1 ? dw : partial,
                            adds && splits == 1,
                            static_cast<int>(dy.dy.n * dy.dy.plane()),
                            0,
                            splits,
                            FastDivide(dy.dy.w),
                            FastDivide(dy.dy.h),
                            FastDivide(taps),
                            FastDivide(row_taps)};
  const int weights = product.channels * taps;
  const int tiles = (product.pixels + pixels_per_tile - 1) / pixels_per_tile;
  product.tiles_per_split = (tiles + splits - 1) / splits;
  with_conv_tile<T, pixels_per_tile>(cut.tile, [&](auto chosen) {
    using Tile = decltype(chosen);
    const dim3 grid(static_cast<unsigned>((weights + Tile::bn - 1) / Tile::bn),
                    static_cast<unsigned>((product.filters + Tile::bm - 1) / Tile::bm),
                    static_cast<unsigned>(g.groups * splits));
    launch(LAMINA_KERNEL(conv_weights_product_kernel<T, Tile>), grid, Tile::threads, 0, stream, product);
  });
  if (splits == 1) return;
  const View<T> sum{dw, 1, dy.dy.c, product.channels, taps, std::int64_t{dy.dy.c} * weights};
  launch(LAMINA_KERNEL(conv_weights_sum_kernel<T>), grid_of_elements(sum), elements_per_block, 0, stream, partial,
         splits, sum, adds);
}

template std::size_t conv_implicit_gemm_partial_bytes(const ConvGeometry&, const View<const float>&,
                                                      const View<const float>&, int);
template std::size_t conv_implicit_gemm_partial_bytes(const ConvGeometry&, const View<const double>&,
                                                      const View<const double>&, int);
template void conv_implicit_gemm_backward_weights(Stream, const ConvGeometry&, View<const float>, const Masked<float>&,
                                                  float*, float*, bool, int, ConvTile);
template void conv_implicit_gemm_backward_weights(Stream, const ConvGeometry&, View<const double>,
                                                  const Masked<double>&, double*, double*, bool, int, ConvTile);

}  // namespace lamina::LAMINA_CUDA_SPACE
