// Convolution by 1x1 kernels and its data gradient:
//
//   result[m, pixel] = sum over k of factor[m, k] * in[k, pixel]
//
// Forward: m is a filter, k a channel of x, factor = w. Data gradient: m is a channel of x, k a filter, in is dy and
// factor = w^T, which is w read along its other axis.
//
// A block computes bm results m by bn pixels (gemm_tile.h). Pixels of all images are in one row, so a tile is
// full whatever the size of a plane. If planes are multiples of a pack, packs of 16 bytes are read and written: no pack
// crosses an image. Else a thread loads one pixel of several channels, and neighbours load neighbouring pixels. The
// address of a thread's pixel is computed once; then it advances by planes. Blocks that share pixels are
// neighbours, so that pixels are read from memory once; weights, which are fewer, come from L2.
//
// If there are too few results for a device, the sum over k is split into ranges, one for each block. Their sums go to
// `partial` and are added in order by a second kernel (conv_ranges.h).
// Per block and step: (bm + bn) bk elements from global memory for bm bn bk multiply-adds.

#include "conv_1x1.h"

#include "conv_ranges.h"
#include "conv_results.h"
#include "kernels/common/fast_divide.h"
#include "kernels/gemm/gemm_tile_loader.h"
#include "kernels/moves/moves.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
struct PixelProduct {
  int groups, results, depth;  ///< number of groups; results m of a group, and terms of a sum
  const T* w;
  int w_row;               ///< elements from one filter to the next
  View<const T> in, mask;  ///< `in` counts only where the mask, if there is one, is above 0
  int in_plane;            ///< elements of a channel of `in`
  const T* bias;
  bool adds, relu;  ///< old contents of `out` are added, then the result is clamped at 0
  View<T> out;
  int rows, columns;            ///< rows and columns of a plane of pixels
  int in_step_h, in_step_w;     ///< pixel (p,q) is at row p in_step_h, column q in_step_w of `in`
  int out_step_h, out_step_w;   ///< the same for `out`
  int pixels, row_tiles;        ///< pixels of all images; tiles along m
  int ranges, steps_per_range;  ///< ranges of the sum
  FastDivide by_plane, by_columns, by_row_tiles;
};

/// The position of a pixel in a plane of `width` columns.
template <class T>
__device__ int place_of(const PixelProduct<T>& product, unsigned pixel, int step_h, int step_w, int width) {
  if (step_h == 1 && step_w == 1) return static_cast<int>(pixel);
  const Divided row = divide(pixel, product.by_columns);
  return static_cast<int>(row.quotient) * step_h * width + static_cast<int>(row.remainder) * step_w;
}

/// Writes all results of a thread, in packs of `width` pixels. `channel` and `left` are the block's first channel and
/// the number of channels from there on. With `adds` and `relu`, the results are clamped at 0 here.
template <class Tile, int width, bool adds, class T>
__device__ void write(const PixelProduct<T>& product, T* range, int channel, int left, int first_pixel,
                      const T (&sums)[Tile::tm][Tile::tn]) {
  const std::int64_t plane = product.out.plane(), first_row = (channel + Tile::row(0)) * plane;
#pragma unroll
  for (int j = 0; j < Tile::tn; j += width) {
    const int number = first_pixel + Tile::column(j);
    if (number >= product.pixels) continue;
    const Divided image = divide(static_cast<unsigned>(number), product.by_plane);
    const int place = width > 1
                          ? static_cast<int>(image.remainder)
                          : place_of(product, image.remainder, product.out_step_h, product.out_step_w, product.out.w);
    T* const to = range + (image.quotient * product.out.pitch + first_row + place);
#pragma unroll
    for (int i = 0; i < Tile::tm; ++i) {
      if (Tile::row(i) >= left) continue;
      Pack<T, width> pack;
#pragma unroll
      for (int k = 0; k < width; ++k) pack.v[k] = sums[i][j + k];
      T* const place_of_row = to + plane * Tile::row_step(i);
      adds ? put_pack(place_of_row, pack, true, product.relu) : store_pack(place_of_row, pack);
    }
  }
}

/// Loads both factors for a thread, step by step. With `along_k`, w is dense along k, as in forward. Packs have
/// `w_width` weights and `width` pixels. For a row or pixel out of range, the last one is read, and nothing is written.
template <class T, class Tile, bool along_k, int w_width, int width, bool masked>
struct PixelLoads {
  using Weights = TileLoader<Tile, along_k, Tile::bm, w_width>;
  using Pixels = TileLoader<Tile, false, Tile::bn, width>;

  const unsigned w_row, in_plane;  // 32 bits, so that an address is one instruction
  const int rows;                  ///< rows of the block, from the thread's first row on
  const T *w, *in, *mask;
  T signs[masked ? Tile::loads_b : 1] = {};

  __device__ PixelLoads(const PixelProduct<T>& product, int group, int first_result, int first_pixel, int first_k)
      : w_row(static_cast<unsigned>(product.w_row)),
        in_plane(static_cast<unsigned>(product.in_plane)),
        rows(product.results - first_result - Weights::free(0)) {
    const std::int64_t w_group = std::int64_t{group} * (along_k ? product.results : product.depth) * w_row;
    const std::int64_t w_free = first_result + Weights::free(0) + min(0, rows - (along_k ? 1 : w_width));
    const std::int64_t w_k = first_k + Weights::k(0);
    w = product.w + (w_group + (along_k ? w_free * w_row + w_k : w_k * w_row + w_free));

    const int pixel = min(first_pixel + Pixels::dense(), product.pixels - width);
    const Divided image = divide(static_cast<unsigned>(pixel), product.by_plane);
    const int place = width > 1
                          ? static_cast<int>(image.remainder)
                          : place_of(product, image.remainder, product.in_step_h, product.in_step_w, product.in.w);
    const std::int64_t at = (std::int64_t{group} * product.depth + first_k + Pixels::k(0)) * in_plane + place;
    in = product.in.data + (image.quotient * product.in.pitch + at);
    mask = masked ? product.mask.data + (image.quotient * product.mask.pitch + at) : nullptr;
  }

  /// Loads the next step's terms. `depth` terms are left; with `whole` they fill the step.
  template <bool whole>
  __device__ void load(int depth, T (&a)[Tile::loads_a], T (&b)[Tile::loads_b]) {
#pragma unroll
    for (int i = 0; i < Weights::passes; ++i) {
      const bool row = !along_k || i == 0 || i * Weights::rows < rows;
      bring_pack_if<w_width>(row && (whole || Weights::k(i) < depth), w + std::uint64_t{w_row} * (i * Weights::rows), i,
                             a);
    }
#pragma unroll
    for (int i = 0; i < Pixels::passes; ++i) {
      const bool counts = whole || Pixels::k(i) < depth;
      bring_pack_if<width>(counts, in + std::uint64_t{in_plane} * (i * Pixels::rows), i, b);
      if constexpr (masked) bring_pack_if<width>(counts, mask + std::uint64_t{in_plane} * (i * Pixels::rows), i, signs);
    }
    w += along_k ? Tile::bk : std::uint64_t{w_row} * Tile::bk;
    in += std::uint64_t{in_plane} * Tile::bk;
    if constexpr (masked) mask += std::uint64_t{in_plane} * Tile::bk;
  }

  __device__ void store(typename Tile::Shared& to, int half, const T (&a)[Tile::loads_a],
                        const T (&b)[Tile::loads_b]) const {
    Weights::store(to.a[half], Tile::Shared::a_pitch, a);
    if constexpr (masked) {
      T counted[Tile::loads_b];
#pragma unroll
      for (int i = 0; i < Tile::loads_b; ++i) counted[i] = signs[i] > T(0) ? b[i] : T(0);
      Pixels::store(to.b[half], Tile::Shared::b_pitch, counted);
    } else {
      Pixels::store(to.b[half], Tile::Shared::b_pitch, b);
    }
  }
};

template <class T, class Tile, bool along_k, int w_width, int width, bool masked>
__global__ __launch_bounds__(Tile::threads, conv_blocks_at_once<Tile>) void conv_1x1_kernel(PixelProduct<T> product) {
  LAMINA_SHARED(typename Tile::Shared, shared);
  const Divided tile = divide(blockIdx.x, product.by_row_tiles);
  const int first_result = static_cast<int>(tile.remainder) * Tile::bm,
            first_pixel = static_cast<int>(tile.quotient) * Tile::bn;
  const int group = static_cast<int>(blockIdx.y), range = static_cast<int>(blockIdx.z);
  const int first_step = range * product.steps_per_range,
            end = min(product.depth, (first_step + product.steps_per_range) * Tile::bk);
  PixelLoads<T, Tile, along_k, w_width, width, masked> loads(product, group, first_result, first_pixel,
                                                             first_step * Tile::bk);

  T sums[Tile::tm][Tile::tn] = {};
  Tile::run(
      shared, first_step, divide_up(end, Tile::bk), sums,
      [&](int step, T(&a)[Tile::loads_a], T(&b)[Tile::loads_b]) {
        const int depth = end - step * Tile::bk;
        if (depth >= Tile::bk)
          loads.template load<true>(depth, a, b);
        else if (depth > 0)
          loads.template load<false>(depth, a, b);
      },
      [&](typename Tile::Shared& to, int half, const T(&a)[Tile::loads_a], const T(&b)[Tile::loads_b]) {
        loads.store(to, half, a, b);
      });

  const int left = product.results - first_result;
  const int channel = group * product.results + first_result;
  finish_sums<Tile>(sums, product.bias, product.relu && !product.adds, channel, left);
  T* const out = product.out.data + range * (product.out.n * product.out.pitch);
  product.adds ? write<Tile, width, true>(product, out, channel, left, first_pixel, sums)
               : write<Tile, width, false>(product, out, channel, left, first_pixel, sums);
}

constexpr ConvTileCost pack_costs[3] = {{ConvTile::tile_128x128, 128, 128, 8, 1140, 1000, 2},
                                        {ConvTile::tile_64x128, 64, 128, 8, 575, 510, 3},
                                        {ConvTile::tile_64x64, 64, 64, 16, 598, 327, 4}};
constexpr ConvTileCost single_costs[3] = {{ConvTile::tile_128x128, 128, 128, 8, 1162, 2230, 2},
                                          {ConvTile::tile_64x128, 64, 128, 8, 595, 1125, 3},
                                          {ConvTile::tile_64x64, 64, 64, 16, 618, 646, 4}};

/// Whether the pixels of `in` are those of `out`, in the same order.
template <class T>
bool is_dense(const PixelProduct<T>& product) {
  return product.in_step_h == 1 && product.in_step_w == 1 && product.out_step_h == 1 && product.out_step_w == 1;
}

/// The tile and the ranges, which depend on the shapes alone.
template <class T>
ConvSchedule schedule_of(const PixelProduct<T>& product, ConvTile tile, int ranges) {
  const bool packs =
      is_dense(product) && product.rows * product.columns % widest<T> == 0 && product.w_row % widest<T> == 0;
  return conv_schedule_for({product.results, product.pixels, product.groups, product.depth, 128, 16},
                           packs ? pack_costs : single_costs, tile, ranges);
}

/// Calls body(width of packs of weights, width of packs of pixels). A product without packs of weights has no packs of
/// pixels.
template <class T, class Body>
void with_widths(bool w_packs, bool pixel_packs, Body body) {
  using One = std::integral_constant<int, 1>;
  using Pack = std::integral_constant<int, widest<T>>;
  if (!w_packs) return body(One(), One());
  pixel_packs ? body(Pack(), Pack()) : body(Pack(), One());
}

template <class T, bool along_k>
void run(Stream stream, const PixelProduct<T>& product, T* partial, ConvTile tile, int ranges) {
  if (product.pixels == 0) return;
  const ConvSchedule cut = schedule_of(product, tile, ranges);

  // The sums of ranges are written as if each range were an image that holds only the product's pixels.
  PixelProduct<T> made = product;
  made.ranges = cut.ranges;
  if (made.ranges > 1) {
    made.out = {partial,      product.out.n,   product.out.c,
                product.rows, product.columns, std::int64_t{product.out.c} * product.rows * product.columns};
    made.bias = nullptr;
    made.relu = made.adds = false;
    made.out_step_h = made.out_step_w = 1;
  }
  const bool w_packs = made.w_row % widest<T> == 0 && reinterpret_cast<std::uintptr_t>(made.w) % 16 == 0;
  const bool pixel_packs = is_dense(made) && has_packs(made.in) && has_packs(made.out) &&
                           (made.mask.data == nullptr || has_packs(made.mask));
  with_conv_tile<T, 8>(cut.tile, [&](auto chosen) {
    using Tile = decltype(chosen);
    const int steps = divide_up(made.depth, Tile::bk);
    made.steps_per_range = divide_up(steps, made.ranges);
    made.row_tiles = divide_up(made.results, Tile::bm);
    made.by_row_tiles = FastDivide(made.row_tiles);
    const dim3 grid(static_cast<unsigned>(divide_up(made.pixels, Tile::bn) * made.row_tiles),
                    static_cast<unsigned>(made.groups), static_cast<unsigned>(made.ranges));
    const auto start = [&](void (*kernel)(PixelProduct<T>)) {
      launch(kernel, "conv_1x1_kernel", grid, Tile::threads, 0, stream, made);
    };
    with_widths<T>(w_packs, pixel_packs, [&](auto w_width, auto width) {
      if constexpr (along_k) {
        start(conv_1x1_kernel<T, Tile, along_k, w_width(), width(), false>);
      } else {
        made.mask.data == nullptr ? start(conv_1x1_kernel<T, Tile, along_k, w_width(), width(), false>)
                                  : start(conv_1x1_kernel<T, Tile, along_k, w_width(), width(), true>);
      }
    });
  });
  if (made.ranges == 1) return;
  ConvRanges<T> all;
  all.partial = partial;
  all.ranges = made.ranges;
  all.rows = product.rows;
  all.columns = product.columns;
  all.out = product.out;
  all.step_h = product.out_step_h;
  all.step_w = product.out_step_w;
  all.bias = product.bias;
  all.relu = product.relu;
  all.adds = product.adds;
  conv_add_ranges(stream, all);
}

template <class T>
std::size_t range_bytes(const PixelProduct<T>& product, int ranges) {
  ranges = schedule_of(product, ConvTile::automatic, ranges).ranges;
  if (ranges == 1) return 0;
  return static_cast<std::size_t>(ranges) * static_cast<std::size_t>(product.pixels) *
         static_cast<std::size_t>(product.out.c) * sizeof(T);
}

/// A product over the pixels of y. The caller sets steps and data.
template <class T>
PixelProduct<T> product_of(int groups, int rows, int columns, int w_row, const View<const T>& in, const View<T>& out) {
  PixelProduct<T> product{};
  product.groups = groups;
  product.results = out.c / groups;
  product.depth = in.c / groups;
  product.w_row = w_row;
  product.in = in;
  product.in_plane = static_cast<int>(in.plane());
  product.out = out;
  product.rows = rows;
  product.columns = columns;
  product.pixels = out.n * rows * columns;
  product.by_plane = FastDivide(rows * columns);
  product.by_columns = FastDivide(columns);
  product.in_step_h = product.in_step_w = product.out_step_h = product.out_step_w = 1;
  return product;
}

template <class T>
PixelProduct<T> forward_product(const ConvGeometry& g, const View<const T>& x, const View<T>& y) {
  PixelProduct<T> product = product_of(g.groups, y.h, y.w, x.c / g.groups, x, y);
  product.in_step_h = g.stride_h;
  product.in_step_w = g.stride_w;
  return product;
}

template <class T>
PixelProduct<T> data_product(const ConvGeometry& g, const View<const T>& dy, const View<T>& dx) {
  PixelProduct<T> product = product_of(g.groups, dy.h, dy.w, dx.c / g.groups, dy, dx);
  product.out_step_h = g.stride_h;
  product.out_step_w = g.stride_w;
  return product;
}

}  // namespace

template <class T>
std::size_t Conv1x1::forward_bytes(const ConvGeometry& g, const View<const T>& x, const View<T>& y, int ranges) {
  return range_bytes(forward_product(g, x, y), ranges);
}

template <class T>
std::size_t Conv1x1::backward_data_bytes(const ConvGeometry& g, const View<const T>& dy, const View<T>& dx,
                                         int ranges) {
  return range_bytes(data_product(g, dy, dx), ranges);
}

template <class T>
void Conv1x1::forward(Stream stream, const ConvGeometry& g, View<const T> x, const T* w, View<T> y,
                      const ConvEnd<T>& end, T* partial, int ranges, ConvTile tile) {
  PixelProduct<T> product = forward_product(g, x, y);
  product.w = w;
  product.bias = end.bias;
  product.adds = end.adds;
  product.relu = end.relu;
  run<T, true>(stream, product, partial, tile, ranges);
}

template <class T>
void Conv1x1::backward_data(Stream stream, const ConvGeometry& g, const T* w, const Masked<T>& dy, View<T> dx,
                            bool adds, T* partial, int ranges, ConvTile tile) {
  PixelProduct<T> product = data_product(g, dy.dy, dx);
  product.w = w;
  product.mask = dy.mask;
  product.adds = adds;
  if (!adds && (g.stride_h > 1 || g.stride_w > 1)) fill(stream, dx, T(0));
  run<T, false>(stream, product, partial, tile, ranges);
}

#define LAMINA_INSTANTIATE(T)                                                                                          \
  template std::size_t Conv1x1::forward_bytes(const ConvGeometry&, const View<const T>&, const View<T>&, int);         \
  template std::size_t Conv1x1::backward_data_bytes(const ConvGeometry&, const View<const T>&, const View<T>&, int);   \
  template void Conv1x1::forward(Stream, const ConvGeometry&, View<const T>, const T*, View<T>, const ConvEnd<T>&, T*, \
                                 int, ConvTile);                                                                       \
  template void Conv1x1::backward_data(Stream, const ConvGeometry&, const T*, const Masked<T>&, View<T>, bool, T*,     \
                                       int, ConvTile);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
