// Convolution and its data gradient as a product without a column matrix:
//
//   result[m, pixel] = sum over k = (channel, r, s) of filter[m, k] * in[channel, row(pixel, r), column(pixel, s)]
//
// Forward: m is a filter, row = p stride - pad + r dilation. Data gradient: m is a channel of x, in is dy, and of the
// taps only those count that dy has a row and a column for. For a pixel (h, w) these are the r with
// (h + pad - r dilation) mod stride = 0: all pixels with the same h mod stride and w mod stride share them, and make a
// product of their own, in which a row of dy is again a linear function of pixel and tap. One launch each.
//
// Where results are too few for a device, the sum over k is cut into ranges, each a block's, whose sums go to `partial`
// and are added in order by a second kernel (conv_ranges.h).
//
// A block makes bm results m by bn pixels (gemm_tile.h). A thread keeps to one pixel while it brings elements of the
// second factor, so that where the pixel lies is worked out once; where a tap lies is worked out once per block and
// tile, by bk threads, two tiles ahead. Pixels are neighbours along a row: a warp's loads are, with stride 1, too.
// Per block and tile: (bm + bn) bk elements from global memory for bm bn bk multiply-adds.

#include "conv_implicit_gemm.h"

#include "conv_gather.h"
#include "conv_ranges.h"
#include "conv_tiles.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// Blocks that the compiler is to leave registers for on a multiprocessor.
template <class Tile>
constexpr int blocks_at_once = Tile::threads == 256 ? 2 : 3;

template <class T, class Tile, class Bring>
__global__ __launch_bounds__(Tile::threads,
                             blocks_at_once<Tile>) void conv_gather_product_kernel(GatherProduct<T> product) {
  __shared__ typename Tile::Shared shared;
  __shared__ typename Bring::Shared shared_taps;
  const int group = static_cast<int>(blockIdx.z) / product.splits,
            split = static_cast<int>(blockIdx.z) % product.splits;
  const int first_result = static_cast<int>(blockIdx.y) * Tile::bm,
            first_pixel = static_cast<int>(blockIdx.x) * Tile::bn;
  const int k_count = product.depth * product.rows.taps * product.columns.taps;
  const int tiles = (k_count + Tile::bk - 1) / Tile::bk, first_tile = split * product.tiles_per_split;
  Bring bring(product, shared_taps, group, first_result, first_pixel, first_tile);

  T sums[Tile::tm][Tile::tn] = {};
  Tile::run(
      shared, first_tile, min(first_tile + product.tiles_per_split, tiles), sums,
      [&](int tile, T(&a)[Tile::loads_a], T(&b)[Tile::loads_b]) { bring.load(tile, a, b); },
      [&](typename Tile::Shared& to, int half, const T(&a)[Tile::loads_a], const T(&b)[Tile::loads_b]) {
        const auto& own = bring.own;
#pragma unroll
        for (int i = 0; i < Tile::loads_a; ++i) to.a[half][own.a_place + i * own.a_rows] = a[i];
#pragma unroll
        for (int i = 0; i < Tile::loads_b; ++i) to.b[half][own.b_place + i * own.b_rows * to.b_pitch] = b[i];
      },
      [&](int tile) { bring.ahead(tile); });

  const int channel = group * product.results + first_result, left = product.results - first_result;
  if (product.bias != nullptr) {
#pragma unroll
    for (int i = 0; i < Tile::tm; ++i) {
      const T bias = Tile::row(i) < left ? product.bias[channel + Tile::row(i)] : T(0);
#pragma unroll
      for (int j = 0; j < Tile::tn; ++j) sums[i][j] += bias;
    }
  }
  if (product.relu && !product.adds) {
#pragma unroll
    for (int i = 0; i < Tile::tm; ++i)
#pragma unroll
      for (int j = 0; j < Tile::tn; ++j) sums[i][j] = cut_at_zero(sums[i][j]);
  }
  T* const range = product.out.data + split * (product.out.n * product.out.pitch);
  if (product.packs) {
    product.adds ? write<Tile, widest<T>, true>(product, range, channel, left, first_pixel, sums)
                 : write<Tile, widest<T>, false>(product, range, channel, left, first_pixel, sums);
  } else {
    product.adds ? write<Tile, 1, true>(product, range, channel, left, first_pixel, sums)
                 : write<Tile, 1, false>(product, range, channel, left, first_pixel, sums);
  }
}

constexpr ConvTileCost gather_costs[3] = {{ConvTile::tile_128x128, 128, 128, 8, 1258, 1330, 2},
                                          {ConvTile::tile_64x128, 64, 128, 8, 656, 720, 3},
                                          {ConvTile::tile_64x64, 64, 64, 16, 705, 560, 4}};

/// Tile and ranges. Without a multiple of 8 channels the largest tile has too few registers.
template <class T>
ConvCut cut_of(const GatherProduct<T>& product, std::int64_t pixels, ConvTile tile, int splits) {
  const bool uneven = product.depth % 8 != 0;
  const std::int64_t depth = std::int64_t{product.depth} * product.rows.taps * product.columns.taps;
  const ConvCut cut =
      conv_cut_for({product.results, pixels, product.groups, depth, 128, 16}, gather_costs, tile, splits);
  return {uneven && cut.tile == ConvTile::tile_128x128 ? ConvTile::tile_64x128 : cut.tile, cut.ranges};
}

/// Whether packs of pixels may be written at once: the product's pixels are those of `out`, in order.
template <class T>
bool has_packs(const GatherProduct<T>& product) {
  const View<T>& out = product.out;
  return product.rows.out_step == 1 && product.columns.out_step == 1 && out.plane() % widest<T> == 0 &&
         out.pitch % widest<T> == 0 && reinterpret_cast<std::uintptr_t>(out.data) % 16 == 0;
}

template <class T>
void run(Stream stream, GatherProduct<T> product, ConvTile tile, int splits) {
  product.pixels = product.out.n * product.rows.count * product.columns.count;
  if (product.pixels == 0) return;
  const int row_taps = std::max(product.columns.taps, 1), taps = std::max(product.rows.taps, 1) * row_taps;
  product.by_columns = FastDivide(product.columns.count);
  product.by_rows = FastDivide(product.rows.count);
  product.by_row_taps = FastDivide(row_taps);
  product.by_taps = FastDivide(taps);
  const int depth = product.depth * product.rows.taps * product.columns.taps;
  const ConvCut cut = cut_of(product, product.pixels, tile, splits);
  splits = product.splits = cut.ranges;

  // Ranges are written as if they were images of the product's pixels alone.
  const int h = product.rows.count, w = product.columns.count;
  const View<T> all{product.partial, product.out.n, product.out.c, h, w, std::int64_t{product.out.c} * h * w};
  GatherProduct<T> made = product;
  if (splits > 1) {
    made.out = all;
    made.bias = nullptr;
    made.relu = made.adds = false;
    made.rows.out_step = made.columns.out_step = 1;
    made.rows.out_base = made.columns.out_base = 0;
  }
  made.packs = has_packs(made);
  with_conv_tile<T, 8>(cut.tile, [&](auto chosen) {
    using Tile = decltype(chosen);
    const int tiles = (depth + Tile::bk - 1) / Tile::bk;
    made.tiles_per_split = (tiles + splits - 1) / splits;
    const dim3 grid(static_cast<unsigned>((product.pixels + Tile::bn - 1) / Tile::bn),
                    static_cast<unsigned>((product.results + Tile::bm - 1) / Tile::bm),
                    static_cast<unsigned>(product.groups * splits));
    const auto start = [&](void (*kernel)(GatherProduct<T>)) {
      launch(kernel, "conv_gather_product_kernel", grid, Tile::threads, 0, stream, made);
    };
    const bool masked = product.mask.data != nullptr;
    if (product.depth % Tile::bk == 0) {
      masked ? start(conv_gather_product_kernel<T, Tile, TapPerStep<T, Tile, true>>)
             : start(conv_gather_product_kernel<T, Tile, TapPerStep<T, Tile, false>>);
    } else if constexpr (Tile::bm * Tile::bn < 128 * 128) {
      masked ? start(conv_gather_product_kernel<T, Tile, TapPerElement<T, Tile, true>>)
             : start(conv_gather_product_kernel<T, Tile, TapPerElement<T, Tile, false>>);
    }
  });
  if (splits == 1) return;
  ConvRanges<T> ranges;
  ranges.partial = product.partial;
  ranges.ranges = splits;
  ranges.rows = h;
  ranges.columns = w;
  ranges.out = product.out;
  ranges.step_h = product.rows.out_step;
  ranges.base_h = product.rows.out_base;
  ranges.step_w = product.columns.out_step;
  ranges.base_w = product.columns.out_base;
  ranges.bias = product.bias;
  ranges.relu = product.relu;
  ranges.adds = product.adds;
  conv_add_ranges(stream, ranges);
}

/// Bytes of the sums of a product's ranges.
template <class T>
std::size_t range_bytes(const GatherProduct<T>& product, int splits) {
  const std::int64_t pixels = std::int64_t{product.out.n} * product.rows.count * product.columns.count;
  splits = cut_of(product, pixels, ConvTile::automatic, splits).ranges;
  if (splits == 1) return 0;
  return static_cast<std::size_t>(splits * pixels * product.out.c) * sizeof(T);
}

int gcd(int a, int b) { return b == 0 ? a : gcd(b, a % b); }

/// The pixels with index mod stride = phase, and the taps that they meet.
ProductAxis phase_axis(int phase, int stride, int pad, int dilation, int kernel, int extent) {
  ProductAxis axis{
      1, 0, 0, stride, phase, (extent - phase + stride - 1) / stride, 0, 0, stride / gcd(dilation, stride)};
  axis.by = -axis.tap_by * dilation / stride;
  for (int tap = 0; tap < std::min(kernel, axis.tap_by); ++tap) {
    const int reach = phase + pad - tap * dilation;
    if (reach % stride != 0) continue;
    axis.tap_first = tap;
    axis.base = reach / stride;
    axis.taps = (kernel - tap + axis.tap_by - 1) / axis.tap_by;
    break;
  }
  return axis;
}

/// The product of forward, but for its data.
template <class T>
GatherProduct<T> forward_product(const ConvGeometry& g, const View<const T>& x, const View<T>& y) {
  const int taps = g.kernel_h * g.kernel_w;
  GatherProduct<T> product{};
  product.rows = {g.stride_h, -g.pad_h, g.dilation_h, 1, 0, y.h, g.kernel_h, 0, 1};
  product.columns = {g.stride_w, -g.pad_w, g.dilation_w, 1, 0, y.w, g.kernel_w, 0, 1};
  product.groups = g.groups;
  product.results = y.c / g.groups;
  product.depth = x.c / g.groups;
  product.in = x;
  product.w_channel = taps;
  product.w_result = product.depth * taps;
  product.w_group = std::int64_t{product.results} * product.w_result;
  product.w_row = g.kernel_w;
  product.out = y;
  return product;
}

/// Calls body(product) for the product of every class of pixels of the data gradient, but for its data.
template <class T, class Body>
void for_each_class(const ConvGeometry& g, const View<const T>& dy, const View<T>& dx, Body body) {
  const int taps = g.kernel_h * g.kernel_w;
  GatherProduct<T> product{};
  product.groups = g.groups;
  product.results = dx.c / g.groups;
  product.depth = dy.c / g.groups;
  product.in = dy;
  product.w_result = taps;
  product.w_channel = product.results * taps;
  product.w_group = std::int64_t{product.depth} * product.w_channel;
  product.w_row = g.kernel_w;
  product.out = dx;
  for (int down = 0; down < std::min(g.stride_h, dx.h); ++down)
    for (int across = 0; across < std::min(g.stride_w, dx.w); ++across) {
      product.rows = phase_axis(down, g.stride_h, g.pad_h, g.dilation_h, g.kernel_h, dx.h);
      product.columns = phase_axis(across, g.stride_w, g.pad_w, g.dilation_w, g.kernel_w, dx.w);
      body(product);
    }
}

}  // namespace

template <class T>
std::size_t conv_implicit_gemm_forward_bytes(const ConvGeometry& g, const View<const T>& x, const View<T>& y,
                                             int splits) {
  return range_bytes(forward_product(g, x, y), splits);
}

template <class T>
std::size_t conv_implicit_gemm_data_bytes(const ConvGeometry& g, const View<const T>& dy, const View<T>& dx,
                                          int splits) {
  std::size_t most = 0;
  for_each_class(g, dy, dx,
                 [&](const GatherProduct<T>& product) { most = std::max(most, range_bytes(product, splits)); });
  return most;
}

template <class T>
void conv_implicit_gemm_forward(Stream stream, const ConvGeometry& g, View<const T> x, const T* w, View<T> y,
                                const ConvEnd<T>& end, T* partial, int splits, ConvTile tile) {
  GatherProduct<T> product = forward_product(g, x, y);
  product.w = w;
  product.bias = end.bias;
  product.adds = end.adds;
  product.relu = end.relu;
  product.partial = partial;
  run(stream, product, tile, splits);
}

template <class T>
void conv_implicit_gemm_backward_data(Stream stream, const ConvGeometry& g, const T* w, const Masked<T>& dy, View<T> dx,
                                      bool adds, T* partial, int splits, ConvTile tile) {
  for_each_class(g, dy.dy, dx, [&](GatherProduct<T> product) {
    // Pixels that no tap reaches keep what they have.
    if (adds && (product.rows.taps == 0 || product.columns.taps == 0)) return;
    product.mask = dy.mask;
    product.w = w;
    product.adds = adds;
    product.partial = partial;
    run(stream, product, tile, splits);
  });
}

#define LAMINA_INSTANTIATE(T)                                                                                         \
  template std::size_t conv_implicit_gemm_forward_bytes(const ConvGeometry&, const View<const T>&, const View<T>&,    \
                                                        int);                                                         \
  template std::size_t conv_implicit_gemm_data_bytes(const ConvGeometry&, const View<const T>&, const View<T>&, int); \
  template void conv_implicit_gemm_forward(Stream, const ConvGeometry&, View<const T>, const T*, View<T>,             \
                                           const ConvEnd<T>&, T*, int, ConvTile);                                     \
  template void conv_implicit_gemm_backward_data(Stream, const ConvGeometry&, const T*, const Masked<T>&, View<T>,    \
                                                 bool, T*, int, ConvTile);
LAMINA_INSTANTIATE(float)
LAMINA_INSTANTIATE(double)
#undef LAMINA_INSTANTIATE

}  // namespace lamina::LAMINA_CUDA_SPACE
