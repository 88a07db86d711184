// Convolution and its data gradient as a product without a column matrix:
//
//   result[m, pixel] = sum over k = (channel, r, s) of filter[m, k] * in[channel, row(pixel, r), column(pixel, s)]
//
// Forward: m is a filter, row = p stride - pad + r dilation. Data gradient: m is a channel of x, in is dy, and a tap
// counts only if dy has a row and a column for it. For a pixel (h, w) a tap (r, s) counts if (h + pad - r dilation) mod
// stride = 0, and w and s likewise. All pixels with the same h mod stride and w mod stride share these taps and form a
// separate product, in which a row of dy is again a linear function of pixel and tap. One launch computes up to 16 of
// these products, first the products with most taps.
//
// If there are too few results for a device, the sum over k is split into ranges, one for each block. Their sums
// go to `partial` and are added in order by a second kernel.
//
// A block computes bm results m by bn pixels (gemm_tile.h). A thread keeps to one pixel while it loads elements of the
// second factor, so the pixel's position is computed once. The position of a tap is computed once per block and
// step of bk, two steps ahead: by bk threads or, if the step is within one tap, by one. Pixels are neighbours along a
// row; with stride 1 a warp's loads are neighbours, too. Per block and tile: (bm + bn) bk elements from global memory
// for bm bn bk multiply-adds.

#include "conv_implicit_gemm.h"

#include <vector>

#include "conv_gather.h"
#include "conv_parts.h"
#include "conv_ranges.h"
#include "conv_results.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// Writes a block's sums, with bias and ReLU.
template <class Tile, class T>
__device__ void put_sums(const GatherProduct<T>& product, int group, int split, int first_result, int first_pixel,
                         T (&sums)[Tile::tm][Tile::tn]) {
  const int channel = group * product.results + first_result, left = product.results - first_result;
  finish_sums<Tile>(sums, product.bias, product.relu && !product.adds, channel, left);
  T* const range = product.out.data + split * (product.out.n * product.out.pitch);
  if (product.packs) {
    product.adds ? write<Tile, widest<T>, true>(product, range, channel, left, first_pixel, sums)
                 : write<Tile, widest<T>, false>(product, range, channel, left, first_pixel, sums);
  } else {
    product.adds ? write<Tile, 1, true>(product, range, channel, left, first_pixel, sums)
                 : write<Tile, 1, false>(product, range, channel, left, first_pixel, sums);
  }
}

template <class T, class Products>
constexpr bool is_one = std::is_same_v<Products, GatherProduct<T>>;

/// The kernel. `Products` is GatherProduct<T> or GatherProducts<T>.
template <class T, class Tile, class TileLoader, class Products>
__global__ __launch_bounds__(Tile::threads,
                             conv_blocks_at_once<Tile>) void conv_gather_product_kernel(const Products products) {
  LAMINA_SHARED(typename Tile::Shared, shared);
  LAMINA_SHARED(typename TileLoader::Shared, shared_taps);
  // The values needed at the end are recomputed there, so that they take no registers until then. If registers are few,
  // the thread that looks ahead recomputes its values, too.
  LAMINA_SHARED(int, shared_part);
  constexpr bool rereads =
      !is_one<T, Products> && Tile::bm * Tile::bn == 128 * 128 && TileLoader::by_one_thread_unmasked;
  const int first_result = static_cast<int>(blockIdx.y) * Tile::bm,
            first_pixel = static_cast<int>(blockIdx.x) * Tile::bn;
  const int part = part_at(products, static_cast<int>(blockIdx.z));
  const auto& product = product_of(products, part);
  const int z = static_cast<int>(blockIdx.z) - product.first_z, group = z / product.splits, split = z % product.splits;
  if constexpr (!is_one<T, Products>) {
    if (first_pixel >= product.pixels) return;  // the grid covers the part with most pixels
    if (threadIdx.x == 0) shared_part = part;
  }
  const int k_count = product.depth * product.rows.taps * product.columns.taps;
  const int tiles = divide_up(k_count, Tile::bk), first_tile = split * product.tiles_per_split;
  TileLoader bring(product, shared_taps, group, first_result, first_pixel, first_tile);

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
      [&](int tile) {
        if (!TileLoader::looks_ahead()) return;
        if constexpr (rereads)
          bring.ahead(product_of(products, shared_part), tile);
        else
          bring.ahead(product, tile);
      });

  if constexpr (is_one<T, Products>) {
    put_sums<Tile>(product, group, split, first_result, first_pixel, sums);
  } else {
    __syncthreads();
    const auto& again = product_of(products, shared_part);
    const int own_z = static_cast<int>(blockIdx.z) - again.first_z;
    put_sums<Tile>(again, own_z / again.splits, own_z % again.splits, first_result, first_pixel, sums);
  }
}

/// Adds the sums of all ranges, in order, for every result of several parts, plus old contents.
template <class T>
__global__ void conv_gather_sum_kernel(const GatherProducts<T> products) {
  const auto& product = product_of(products, static_cast<int>(blockIdx.z));
  const View<T>& all = product.ranges;
  for_each_pack<1>(Extent{all.n, all.image()}, [&](int n, std::int64_t i) {
    const Divided row = divide(static_cast<unsigned>(i), product.by_columns);
    const Divided channel = divide(row.quotient, product.by_rows);
    const T* from = all.at(n, 0) + i;
    Pack<T, 1> sum{};
    for (int split = 0; split < product.splits; ++split, from += all.n * all.pitch) sum.v[0] += *from;
    const Pixel pixel{n, static_cast<int>(channel.remainder), static_cast<int>(row.remainder)};
    put_pack(product.out.at(n, static_cast<int>(channel.quotient)) + place_of(product, pixel), sum, product.adds);
  });
}

constexpr ConvTileCost gather_costs[3] = {{ConvTile::tile_128x128, 128, 128, 8, 1258, 1330, 2},
                                          {ConvTile::tile_64x128, 64, 128, 8, 656, 720, 3},
                                          {ConvTile::tile_64x64, 64, 64, 16, 705, 560, 4}};

/// The same costs for results that are written singly, between the results of other classes.
constexpr ConvTileCost strided_costs[3] = {{ConvTile::tile_128x128, 128, 128, 8, 1258, 3200, 2},
                                           {ConvTile::tile_64x128, 64, 128, 8, 656, 1660, 3},
                                           {ConvTile::tile_64x64, 64, 64, 16, 705, 1045, 4}};

/// The tile and the ranges. If the channels are not a multiple of 8, the largest tile has too few registers.
template <class T>
ConvSchedule schedule_of(const GatherProduct<T>& product, const std::vector<ProductPart<T>>& parts, ConvTile tile,
                         int splits) {
  std::vector<ConvPart> sizes;
  for (const ProductPart<T>& part : parts)
    sizes.push_back({part.pixels, std::int64_t{product.depth} * part.rows.taps * part.columns.taps});
  const auto cut_for = [&](ConvTile taken, int ranges) {
    return conv_schedule_for({product.results, 0, product.groups, 0, 128, 16}, sizes.data(),
                             static_cast<int>(sizes.size()), parts.size() > 1 ? strided_costs : gather_costs, taken,
                             ranges);
  };
  const ConvSchedule cut = cut_for(tile, splits);
  return product.depth % 8 != 0 && cut.tile == ConvTile::tile_128x128 ? cut_for(ConvTile::tile_64x128, cut.ranges)
                                                                      : cut;
}

/// Whether packs of pixels may be written: the product's pixels must be those of `out`, in the same order.
template <class T>
bool has_packs(const ProductPart<T>& part) {
  return part.rows.out_step == 1 && part.columns.out_step == 1 && has_packs(part.out);
}

template <class T>
struct Same {
  using type = T;
};

/// Calls body(tile, Same<TileLoader>()) with the types that a product takes.
template <class T, class Body>
void with_tile_loader(const GatherProduct<T>& product, ConvTile tile, Body body) {
  with_conv_tile<T, 8>(tile, [&](auto chosen) {
    using Tile = decltype(chosen);
    const bool masked = product.mask.data != nullptr;
    if (product.depth % Tile::bk == 0) {
      masked ? body(chosen, Same<TapPerStep<T, Tile, true>>()) : body(chosen, Same<TapPerStep<T, Tile, false>>());
    } else if constexpr (Tile::bm * Tile::bn < 128 * 128) {
      masked ? body(chosen, Same<TapPerElement<T, Tile, true>>()) : body(chosen, Same<TapPerElement<T, Tile, false>>());
    }
  });
}

/// Calls body(products) with the first `count` parts of a product, as the parameter of a kernel for one part or more.
template <class T, class Body>
void with_products(const GatherProduct<T>& product, const std::vector<ProductPart<T>>& parts, std::size_t count,
                   Body body) {
  if (parts.size() == 1) {
    GatherProduct<T> one = product;
    static_cast<ProductPart<T>&>(one) = parts[0];
    return body(one);
  }
  GatherProducts<T> several{product, static_cast<int>(count), {}};
  several.common.rows = parts[0].rows;
  several.common.columns = parts[0].columns;
  std::copy_n(parts.begin(), count, several.parts);
  body(several);
}

/// The size of a part's ranges in `partial`.
template <class T>
std::int64_t range_count(const ProductPart<T>& part) {
  return part.splits == 1 ? 0 : part.splits * std::int64_t{part.pixels} * part.out.c;
}

/// Gives the parts their ranges, one after another in `partial`. Returns the tile.
template <class T>
ConvTile split(const GatherProduct<T>& product, std::vector<ProductPart<T>>& parts, T* partial, ConvTile tile,
               int splits) {
  const ConvSchedule cut = schedule_of(product, parts, tile, splits);
  const auto taps = [](const ProductPart<T>& part) { return part.rows.taps * part.columns.taps; };
  int z = 0;
  for (ProductPart<T>& part : parts) {
    part.splits = ranges_of(taps(part), taps(parts.front()), cut.ranges);
    part.first_z = z;
    z += product.groups * part.splits;
    const int h = part.rows.count, w = part.columns.count;
    part.ranges = {partial, part.out.n, part.out.c, h, w, std::int64_t{part.out.c} * h * w};
    if (partial != nullptr) partial += range_count(part);
  }
  return cut.tile;
}

/// The ranges to add, if the launch is one product.
template <class T>
ConvRanges<T> ranges_of_one(const GatherProduct<T>& product, const ProductPart<T>& part) {
  ConvRanges<T> ranges;
  ranges.partial = part.ranges.data;
  ranges.ranges = part.splits;
  ranges.rows = part.ranges.h;
  ranges.columns = part.ranges.w;
  ranges.out = part.out;
  ranges.step_h = part.rows.out_step;
  ranges.base_h = part.rows.out_base;
  ranges.step_w = part.columns.out_step;
  ranges.base_w = part.columns.out_base;
  ranges.bias = product.bias;
  ranges.relu = product.relu;
  ranges.adds = part.adds;
  return ranges;
}

/// Computes the parts of a product. The part with most taps comes first. A product of several parts has neither bias
/// nor ReLU.
template <class T>
void run(Stream stream, const GatherProduct<T>& product, std::vector<ProductPart<T>> parts, T* partial, ConvTile tile,
         int splits) {
  tile = split(product, parts, partial, tile, splits);
  // The sums of ranges are written as if each range were an image that holds only the product's pixels.
  std::vector<ProductPart<T>> made = parts;
  GatherProduct<T> common = product;
  int most_pixels = 0;
  for (ProductPart<T>& part : made) {
    most_pixels = std::max(most_pixels, part.pixels);
    if (part.splits > 1) {
      part.out = part.ranges;
      part.adds = false;
      part.rows.out_step = part.columns.out_step = 1;
      part.rows.out_base = part.columns.out_base = 0;
    }
    part.packs = has_packs(part);
  }
  if (made.front().splits > 1) {
    common.bias = nullptr;
    common.relu = false;
  }
  const int blocks_z = made.back().first_z + product.groups * made.back().splits;
  with_tile_loader(product, tile, [&](auto chosen, auto bring) {
    using Tile = decltype(chosen);
    using TileLoader = typename decltype(bring)::type;
    for (ProductPart<T>& part : made) {
      const int depth = product.depth * part.rows.taps * part.columns.taps, tiles = divide_up(depth, Tile::bk);
      part.tiles_per_split = divide_up(tiles, part.splits);
    }
    const dim3 grid(static_cast<unsigned>(divide_up(most_pixels, Tile::bn)),
                    static_cast<unsigned>(divide_up(product.results, Tile::bm)), static_cast<unsigned>(blocks_z));
    with_products(common, made, made.size(), [&](const auto& products) {
      using Products = std::decay_t<decltype(products)>;
      launch(conv_gather_product_kernel<T, Tile, TileLoader, Products>, "conv_gather_product_kernel", grid,
             Tile::threads, 0, stream, products);
    });
  });

  // Parts with fewer taps have fewer ranges. Parts whose ranges are added come first.
  std::size_t added = 0;
  std::int64_t most_results = 0;
  for (; added < parts.size() && parts[added].splits > 1; ++added)
    most_results = std::max(most_results, parts[added].ranges.image());
  if (added == 0) return;
  if (parts.size() == 1) return conv_add_ranges(stream, ranges_of_one(product, parts[0]));
  with_products(product, parts, added, [&](const auto& products) {
    if constexpr (!is_one<T, std::decay_t<decltype(products)>>) {
      dim3 grid = grid_of_packs({parts[0].ranges.n, most_results}, 1);
      grid.z = static_cast<unsigned>(added);
      launch(conv_gather_sum_kernel<T>, "conv_gather_sum_kernel", grid, pack_threads, 0, stream, products);
    }
  });
}

/// Bytes of the sums of the parts' ranges.
template <class T>
std::size_t range_bytes(const GatherProduct<T>& product, std::vector<ProductPart<T>> parts, int splits) {
  split<T>(product, parts, nullptr, ConvTile::automatic, splits);
  std::int64_t count = 0;
  for (const ProductPart<T>& part : parts) count += range_count(part);
  return static_cast<std::size_t>(count) * sizeof(T);
}

}  // namespace

template <class T>
std::size_t ConvImplicitGemm::forward_bytes(const ConvGeometry& g, const View<const T>& x, const View<T>& y,
                                            int splits) {
  const std::vector<ProductPart<T>> parts = forward_parts(g, y);
  return parts.empty() ? 0 : range_bytes(forward_product(g, x, y), parts, splits);
}

template <class T>
std::size_t ConvImplicitGemm::backward_data_bytes(const ConvGeometry& g, const View<const T>& dy, const View<T>& dx,
                                                  int splits) {
  std::size_t most = 0;
  // Classes without taps need no ranges, but their presence decides how the other classes are grouped into launches.
  for (const bool adds : {false, true})
    for_each_launch(g, dx, adds, splits, [&](const std::vector<ProductPart<T>>& parts) {
      most = std::max(most, range_bytes(data_product(g, dy, dx), parts, splits));
    });
  return most;
}

template <class T>
std::int64_t conv_implicit_gemm_forward_cycles(const ConvGeometry& g, const View<const T>& x, const View<T>& y) {
  const std::vector<ProductPart<T>> parts = forward_parts(g, y);
  return parts.empty() ? 0 : schedule_of(forward_product(g, x, y), parts, ConvTile::automatic, 0).cycles;
}

template <class T>
std::int64_t conv_implicit_gemm_data_cycles(const ConvGeometry& g, const View<const T>& dy, const View<T>& dx) {
  std::int64_t cycles = 0;
  for_each_launch(g, dx, false, 0, [&](const std::vector<ProductPart<T>>& parts) {
    cycles += schedule_of(data_product(g, dy, dx), parts, ConvTile::automatic, 0).cycles;
  });
  return cycles;
}

template <class T>
void ConvImplicitGemm::forward(Stream stream, const ConvGeometry& g, View<const T> x, const T* w, View<T> y,
                               const ConvEnd<T>& end, T* partial, int splits, ConvTile tile) {
  GatherProduct<T> product = forward_product(g, x, y);
  product.w = w;
  product.bias = end.bias;
  product.relu = end.relu;
  std::vector<ProductPart<T>> parts = forward_parts(g, y);
  for (ProductPart<T>& part : parts) part.adds = end.adds;
  if (!parts.empty()) run(stream, product, parts, partial, tile, splits);
}

template <class T>
void ConvImplicitGemm::backward_data(Stream stream, const ConvGeometry& g, const T* w, const Masked<T>& dy, View<T> dx,
                                     bool adds, T* partial, int splits, ConvTile tile) {
  GatherProduct<T> product = data_product(g, dy.dy, dx);
  product.mask = dy.mask;
  product.w = w;
  for_each_launch(g, dx, adds, splits, [&](const std::vector<ProductPart<T>>& parts) {
    run(stream, product, parts, partial, tile, splits);
  });
}

#define LAMINA_INSTANTIATE(T)                                                                                         \
  template std::size_t ConvImplicitGemm::forward_bytes(const ConvGeometry&, const View<const T>&, const View<T>&,     \
                                                       int);                                                          \
  template std::size_t ConvImplicitGemm::backward_data_bytes(const ConvGeometry&, const View<const T>&,               \
                                                             const View<T>&, int);                                    \
  template std::int64_t conv_implicit_gemm_forward_cycles(const ConvGeometry&, const View<const T>&, const View<T>&); \
  template std::int64_t conv_implicit_gemm_data_cycles(const ConvGeometry&, const View<const T>&, const View<T>&);    \
  template void ConvImplicitGemm::forward(Stream, const ConvGeometry&, View<const T>, const T*, View<T>,              \
                                          const ConvEnd<T>&, T*, int, ConvTile);                                      \
  template void ConvImplicitGemm::backward_data(Stream, const ConvGeometry&, const T*, const Masked<T>&, View<T>,     \
                                                bool, T*, int, ConvTile);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
