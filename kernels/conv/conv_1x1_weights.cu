// The weight gradient of 1x1 kernels:
//
//   dw[m, c] = sum over pixels (n,p,q) of dy[n,m,p,q] * x[n, c, p stride, q stride]
//
// A block computes bm filters m by bn channels c (gemm_tile.h). Both factors are dense along the sum: a thread loads
// packs of 16 bytes of pixels if planes are multiples of a pack, else single pixels, of every `rows`-th filter and
// channel. The position of its pixel is computed once per step, for both factors.
//
// Filters by channels give few blocks, and there are many pixels. So the pixels are split into ranges, one per block.
// The sums go to `partial` and are added in order by a second kernel (conv_ranges.h).

#include "conv_1x1.h"
#include "conv_ranges.h"
#include "conv_results.h"
#include "kernels/common/fast_divide.h"
#include "kernels/gemm/gemm_tile_loader.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
struct WeightProduct {
  int groups, filters, channels;  ///< number of groups; filters and channels of a group
  View<const T> x;
  Masked<T> dy;
  T* dw;  ///< result, or the partial sums
  bool adds;
  bool packs;  ///< packs of widest<T> channels are contiguous in dw and aligned to 16 bytes
  int stride_h, stride_w;
  int pixels;  ///< pixels of y, over all images
  int ranges, steps_per_range;
  int dy_plane, x_plane;  ///< elements of a channel
  FastDivide by_plane, by_columns, by_channel_tiles;
};

/// Loads both factors for a thread, step by step, in packs of `width` pixels. For a row out of range another row is
/// read, and nothing is written.
template <class T, class Tile, int width, bool masked>
struct WeightLoads {
  using Filters = TileLoader<Tile, true, Tile::bm, width>;
  using Channels = TileLoader<Tile, true, Tile::bn, width>;
  static_assert(Filters::per_row == Channels::per_row);

  const WeightProduct<T>& product;
  const unsigned dy_plane, x_plane;  // 32 bits, so that an address is one instruction
  const int filters, channels;       ///< filters and channels of the block, from the thread's first on
  const T *dy, *mask, *x;            ///< first row of the thread in the first image
  T signs[masked ? Tile::loads_a : 1] = {};

  __device__ WeightLoads(const WeightProduct<T>& p, int group, int first_filter, int first_channel)
      : product(p),
        dy_plane(static_cast<unsigned>(p.dy_plane)),
        x_plane(static_cast<unsigned>(p.x_plane)),
        filters(p.filters - first_filter - Filters::row(0)),
        channels(p.channels - first_channel - Channels::row(0)) {
    const std::int64_t filter = group * p.filters + first_filter + Filters::row(0) + min(0, filters - 1);
    const std::int64_t channel = group * p.channels + first_channel + Channels::row(0) + min(0, channels - 1);
    dy = p.dy.dy.data + filter * dy_plane;
    mask = masked ? p.dy.mask.data + filter * dy_plane : nullptr;
    x = p.x.data + channel * x_plane;
  }

  /// Loads the factors of the step that begins with pixel `first`. With `whole` all its pixels exist.
  template <bool whole>
  __device__ void load(int first, T (&a)[Tile::loads_a], T (&b)[Tile::loads_b]) {
    const int pixel = first + Filters::dense();
    const bool counts = whole || pixel < product.pixels;
    const Divided image = divide(static_cast<unsigned>(pixel), product.by_plane);
    const unsigned place = image.remainder;
    unsigned x_place = place;
    if (width == 1 && (product.stride_h != 1 || product.stride_w != 1)) {
      const Divided row = divide(place, product.by_columns);
      x_place = row.quotient * static_cast<unsigned>(product.stride_h * product.x.w) +
                row.remainder * static_cast<unsigned>(product.stride_w);
    }
    const T* const dy_from = dy + (image.quotient * product.dy.dy.pitch + place);
    const T* const mask_from = masked ? mask + (image.quotient * product.dy.mask.pitch + place) : nullptr;
    const T* const x_from = x + (image.quotient * product.x.pitch + x_place);
#pragma unroll
    for (int i = 0; i < Filters::passes; ++i) {
      const bool row_counts = counts && (i == 0 || i * Filters::rows < filters);
      bring_pack_if<width>(row_counts, dy_from + std::uint64_t{dy_plane} * (i * Filters::rows), i, a);
      if constexpr (masked)
        bring_pack_if<width>(row_counts, mask_from + std::uint64_t{dy_plane} * (i * Filters::rows), i, signs);
    }
#pragma unroll
    for (int i = 0; i < Channels::passes; ++i)
      bring_pack_if<width>(counts && (i == 0 || i * Channels::rows < channels),
                           x_from + std::uint64_t{x_plane} * (i * Channels::rows), i, b);
  }

  __device__ void store(typename Tile::Shared& to, int half, const T (&a)[Tile::loads_a],
                        const T (&b)[Tile::loads_b]) const {
    if constexpr (masked) {
      T counted[Tile::loads_a];
#pragma unroll
      for (int i = 0; i < Tile::loads_a; ++i) counted[i] = signs[i] > T(0) ? a[i] : T(0);
      Filters::store(to.a[half], Tile::Shared::a_pitch, counted);
    } else {
      Filters::store(to.a[half], Tile::Shared::a_pitch, a);
    }
    Channels::store(to.b[half], Tile::Shared::b_pitch, b);
  }
};

template <class T, class Tile, int width, bool masked>
__global__ __launch_bounds__(Tile::threads,
                             conv_blocks_at_once<Tile>) void conv_1x1_weights_kernel(WeightProduct<T> product) {
  LAMINA_SHARED(typename Tile::Shared, shared);
  const Divided tile = divide(blockIdx.x, product.by_channel_tiles);
  const int group = static_cast<int>(blockIdx.y), range = static_cast<int>(blockIdx.z);
  const int first_filter = static_cast<int>(tile.quotient) * Tile::bm,
            first_channel = static_cast<int>(tile.remainder) * Tile::bn;
  const int steps = divide_up(product.pixels, Tile::bk), first_step = range * product.steps_per_range,
            last_step = min(first_step + product.steps_per_range, steps);
  WeightLoads<T, Tile, width, masked> loads(product, group, first_filter, first_channel);

  T sums[Tile::tm][Tile::tn] = {};
  Tile::run(
      shared, first_step, last_step, sums,
      [&](int step, T(&a)[Tile::loads_a], T(&b)[Tile::loads_b]) {
        const int first = step * Tile::bk;
        if (width > 1 && first + Tile::bk <= product.pixels)  // single pixels have no registers left for two paths
          loads.template load<true>(first, a, b);
        else if (first < product.pixels)
          loads.template load<false>(first, a, b);
      },
      [&](typename Tile::Shared& to, int half, const T(&a)[Tile::loads_a], const T(&b)[Tile::loads_b]) {
        loads.store(to, half, a, b);
      });

  const int left_m = product.filters - first_filter, left_n = product.channels - first_channel;
  const std::int64_t all = std::int64_t{product.dy.dy.c} * product.channels;
  T* const dw = product.dw + range * all + (std::int64_t{group} * product.filters + first_filter) * product.channels +
                first_channel;
  write_weights<Tile>(dw, product.channels, left_m, left_n, sums, product.packs, product.adds);
}

constexpr ConvTileCost pack_costs[3] = {{ConvTile::tile_128x128, 128, 128, 8, 1180, 822, 2},
                                        {ConvTile::tile_64x128, 64, 128, 8, 605, 411, 3},
                                        {ConvTile::tile_64x64, 64, 64, 16, 628, 285, 4}};
constexpr ConvTileCost single_costs[3] = {{ConvTile::tile_64x128, 64, 128, 8, 634, 472, 3},
                                          {ConvTile::tile_64x128, 64, 128, 8, 634, 472, 3},
                                          {ConvTile::tile_64x64, 64, 64, 16, 671, 344, 4}};

/// With single pixels the largest tile has too few registers. The next tile has the same depth of steps, and so gives
/// the same bits.
ConvTile tile_of_singles(ConvTile tile) { return tile == ConvTile::tile_128x128 ? ConvTile::tile_64x128 : tile; }

template <class T>
ConvSchedule schedule_of(const ConvGeometry& g, const View<const T>& x, const View<const T>& dy, ConvTile tile,
                         int ranges) {
  const bool packs = g.stride_h == 1 && g.stride_w == 1 && dy.plane() % widest<T> == 0;
  return conv_schedule_for({dy.c / g.groups, x.c / g.groups, g.groups, dy.n * dy.plane(), 512, 256},
                           packs ? pack_costs : single_costs, packs ? tile : tile_of_singles(tile), ranges);
}

}  // namespace

template <class T>
std::size_t Conv1x1::backward_weights_bytes(const ConvGeometry& g, const View<const T>& x, const View<const T>& dy,
                                            int ranges) {
  ranges = schedule_of(g, x, dy, ConvTile::automatic, ranges).ranges;
  if (ranges == 1) return 0;
  return static_cast<std::size_t>(ranges) * static_cast<std::size_t>(dy.c) * static_cast<std::size_t>(x.c / g.groups) *
         sizeof(T);
}

template <class T>
void Conv1x1::backward_weights(Stream stream, const ConvGeometry& g, View<const T> x, const Masked<T>& dy, T* dw,
                               T* partial, bool adds, int ranges, ConvTile tile) {
  const ConvSchedule cut = schedule_of(g, x, dy.dy, tile, ranges);
  WeightProduct<T> product{};
  product.groups = g.groups;
  product.filters = dy.dy.c / g.groups;
  product.channels = x.c / g.groups;
  product.x = x;
  product.dy = dy;
  product.ranges = cut.ranges;
  product.dw = product.ranges == 1 ? dw : partial;
  product.adds = adds && product.ranges == 1;
  product.packs = product.channels % widest<T> == 0 && reinterpret_cast<std::uintptr_t>(product.dw) % 16 == 0;
  product.stride_h = g.stride_h;
  product.stride_w = g.stride_w;
  product.pixels = static_cast<int>(dy.dy.n * dy.dy.plane());
  product.dy_plane = static_cast<int>(dy.dy.plane());
  product.x_plane = static_cast<int>(x.plane());
  product.by_plane = FastDivide(static_cast<int>(dy.dy.plane()));
  product.by_columns = FastDivide(dy.dy.w);
  const bool pixel_packs = g.stride_h == 1 && g.stride_w == 1 && has_packs(x) && has_packs(dy.dy) &&
                           (dy.mask.data == nullptr || has_packs(dy.mask));
  with_conv_tile<T, 8>(pixel_packs ? cut.tile : tile_of_singles(cut.tile), [&](auto chosen) {
    using Tile = decltype(chosen);
    const int steps = divide_up(product.pixels, Tile::bk);
    product.steps_per_range = divide_up(steps, product.ranges);
    const int channel_tiles = divide_up(product.channels, Tile::bn);
    product.by_channel_tiles = FastDivide(channel_tiles);
    const dim3 grid(static_cast<unsigned>(divide_up(product.filters, Tile::bm) * channel_tiles),
                    static_cast<unsigned>(product.groups), static_cast<unsigned>(product.ranges));
    const auto start = [&](void (*kernel)(WeightProduct<T>)) {
      launch(kernel, "conv_1x1_weights_kernel", grid, Tile::threads, 0, stream, product);
    };
    const bool masked = dy.mask.data != nullptr;
    if (pixel_packs) {
      masked ? start(conv_1x1_weights_kernel<T, Tile, widest<T>, true>)
             : start(conv_1x1_weights_kernel<T, Tile, widest<T>, false>);
    } else if constexpr (Tile::bm * Tile::bn < 128 * 128) {
      masked ? start(conv_1x1_weights_kernel<T, Tile, 1, true>) : start(conv_1x1_weights_kernel<T, Tile, 1, false>);
    }
  });
  conv_add_weight_ranges(stream, partial, product.ranges, g.groups, product.filters * product.channels, dw, adds);
}

#define LAMINA_INSTANTIATE(T)                                                                                         \
  template std::size_t Conv1x1::backward_weights_bytes(const ConvGeometry&, const View<const T>&,                     \
                                                       const View<const T>&, int);                                    \
  template void Conv1x1::backward_weights(Stream, const ConvGeometry&, View<const T>, const Masked<T>&, T*, T*, bool, \
                                          int, ConvTile);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
