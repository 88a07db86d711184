#pragma once
// The product for a convolution and for its data gradient (conv_implicit_gemm.cu): its sizes, and the two ways
// in which a thread loads its elements of both factors to registers. A thread keeps to one pixel, so the pixel's
// position is computed once.
//
//   TapPerStep      a step of the product is one tap (r,s) of bk channels. Its position, and whether the pixel has it,
//                   is computed once per step. The taps of bk channels follow one another, so that what they read
//                   stays in L1. Used if the number of channels is a multiple of bk.
//   TapPerElement   k counts (channel, r, s) without gaps; the positions of its taps are computed once per block and
//                   step, by bk threads, two steps ahead. Used for all other numbers of channels.

#include "conv_tiles.h"
#include "kernels/common/clamp_at_zero.h"
#include "kernels/common/fast_divide.h"
#include "kernels/gemm/gemm_tile.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The pixels of a product along one axis. Tap i of result `index` reads row index * step + base + i * by of `in`; the
/// result is at index * out_step + out_base.
struct ProductAxis {
  int step, base, by;
  int out_step, out_base;
  int count;                    ///< number of results
  int taps, tap_first, tap_by;  ///< tap i of the product is tap_first + i tap_by of the filter
};

/// The numbers that differ between the products of a launch. Each product has the pixels that share the same taps.
template <class T>
struct ProductPart {
  ProductAxis rows, columns;
  FastDivide by_columns, by_rows, by_taps, by_row_taps;
  int pixels;
  int splits, tiles_per_split;  ///< ranges of k, and their length in tiles
  int first_z;                  ///< first position along the grid's z
  View<T> out;
  View<T> ranges;    ///< with several ranges: results of range 0; those of ranges 1, 2, ... follow
  bool adds, packs;  ///< packs of widest<T> pixels are contiguous in `out` and aligned to 16 bytes
};

template <class T>
struct GatherProduct : ProductPart<T> {
  int groups, results, depth;  ///< number of groups; results m of a group, and channels to sum over
  View<const T> in, mask;      ///< `in` counts only where the mask, if there is one, is above 0
  const T* w;
  std::int64_t w_group;     ///< elements from one group's filters to the next group's
  int w_result, w_channel;  ///< elements from one result, or channel, to the next
  int w_row;                ///< taps of a row of the filter
  const T* bias;
  bool relu;
};

/// Several products in one launch, one for each class of pixels. The longest come first, so that the launch has a short
/// tail.
template <class T>
struct GatherProducts {
  static constexpr int most = 16;  ///< products of a stride of 4 x 4
  GatherProduct<T> common;
  int count;
  ProductPart<T> parts[most];
};
static_assert(sizeof(GatherProducts<double>) <= 4096, "what a kernel's parameters may take on every device");

/// The product of the block at position `z` along the grid's z.
template <class T>
__device__ int part_at(const GatherProduct<T>&, int) {
  return 0;
}
template <class T>
__device__ int part_at(const GatherProducts<T>& products, int z) {
  int part = 0;
  while (part + 1 < products.count && z >= products.parts[part + 1].first_z) ++part;
  return part;
}
template <class T>
__device__ const GatherProduct<T>& product_of(const GatherProduct<T>& product, int) {
  return product;
}
template <class T>
__device__ GatherProduct<T> product_of(const GatherProducts<T>& products, int part) {
  GatherProduct<T> product = products.common;
  static_cast<ProductPart<T>&>(product) = products.parts[part];
  // The common part has an address known in advance, and takes no registers.
  product.rows.step = product.columns.step = 1;
  product.rows.by = products.common.rows.by;
  product.rows.tap_by = products.common.rows.tap_by;
  product.columns.by = products.common.columns.by;
  product.columns.tap_by = products.common.columns.tap_by;
  return product;
}

template <class T>
__device__ unsigned plane_of(const View<T>& view) {
  return static_cast<unsigned>(view.h) * static_cast<unsigned>(view.w);
}

/// Image, row and column of a pixel of the product.
struct Pixel {
  int n, row, column;
};

template <class T>
__device__ Pixel pixel_of(const GatherProduct<T>& product, int pixel) {
  const Divided row = divide(static_cast<unsigned>(pixel), product.by_columns);
  const Divided image = divide(row.quotient, product.by_rows);
  return {static_cast<int>(image.quotient), static_cast<int>(image.remainder), static_cast<int>(row.remainder)};
}

/// The position of a pixel's results in a plane of `out`.
template <class T>
__device__ std::int64_t place_of(const GatherProduct<T>& product, const Pixel& pixel) {
  return std::int64_t{pixel.row * product.rows.out_step + product.rows.out_base} * product.out.w +
         pixel.column * product.columns.out_step + product.columns.out_base;
}

/// A tap of a channel: its offset from a pixel's position in `in` and from a filter's first tap. Positions are counted
/// modulo 2^32. If the pixel has the tap, the result is the position itself, because an image has fewer than 2^32
/// elements.
struct Tap {
  unsigned in;
  int row, column;
  unsigned w;
};

/// Tap number `number` of the product.
template <class T>
__device__ Tap tap_of(const GatherProduct<T>& product, unsigned channel, unsigned number) {
  const Divided tap = divide(number, product.by_row_taps);
  const int r = static_cast<int>(tap.quotient), s = static_cast<int>(tap.remainder);
  const int row = r * product.rows.by, column = s * product.columns.by;
  const int filter_row = r * product.rows.tap_by, filter_column = s * product.columns.tap_by;
  return {channel * plane_of(product.in) + static_cast<unsigned>(row * product.in.w + column), row, column,
          channel * static_cast<unsigned>(product.w_channel) +
              static_cast<unsigned>(filter_row * product.w_row + filter_column)};
}

/// The elements that a thread loads. Of the second factor, it loads elements of one pixel. Of the first factor, it
/// loads elements of result a_row and of every a_rows-th result after that.
template <class T, class Tile>
struct Share {
  static constexpr int nowhere = -(1 << 30);
  static constexpr int b_rows = Tile::threads / Tile::bn, a_rows = Tile::threads / Tile::bk;
  static_assert(Tile::threads % Tile::bn == 0 && Tile::threads % Tile::bk == 0);
  int b_row, a_k;
  int b_place, a_place;  ///< positions of the thread's first elements in shared memory
  int results;           ///< results of the block, from a_row on
  int row, column;       ///< row and column of `in` for a tap at 0; a row far outside: no pixel
  unsigned place;        ///< offset of row and column in a plane
  const T *in, *mask, *filters;

  __device__ Share(const GatherProduct<T>& product, int group, int first_result, int first_pixel) {
    const int thread = static_cast<int>(threadIdx.x);
    const int b_column = thread % Tile::bn, a_row = thread / Tile::bk;
    b_row = thread / Tile::bn;
    a_k = thread % Tile::bk;
    b_place = b_row * Tile::Shared::b_pitch + b_column;
    a_place = a_k * Tile::Shared::a_pitch + a_row;
    results = product.results - first_result - a_row;
    const bool inside = first_pixel + b_column < product.pixels;
    const Pixel own = pixel_of(product, inside ? first_pixel + b_column : 0);
    row = own.row * product.rows.step + product.rows.base;
    column = own.column * product.columns.step + product.columns.base;
    place = static_cast<unsigned>(row) * static_cast<unsigned>(product.in.w) + static_cast<unsigned>(column);
    if (!inside) row = nowhere;
    in = product.in.at(own.n, group * product.depth);
    mask = product.mask.data == nullptr ? nullptr : product.mask.at(own.n, group * product.depth);
    filters = product.w + group * product.w_group + product.rows.tap_first * product.w_row + product.columns.tap_first +
              std::int64_t{min(first_result + a_row, product.results - 1)} * product.w_result;
  }

  /// Whether the pixel has a tap.
  __device__ bool has(const GatherProduct<T>& product, const Tap& tap) const {
    return (static_cast<unsigned>(row + tap.row) < static_cast<unsigned>(product.in.h)) &
           (static_cast<unsigned>(column + tap.column) < static_cast<unsigned>(product.in.w));
  }
};

template <class T, class Tile, bool masked>
struct TapPerStep {
  /// The taps of a step's first channel. `in` and `w` are the distances to the next step's first tap.
  using Shared = Tap[2];

  const GatherProduct<T>& product;
  Shared& taps;
  const Share<T, Tile> own;
  // The addresses that the next step loads from. The loop carries them, so they stay in registers, and an address takes
  // one instruction; a sum of offsets would take six.
  const T *in, *mask, *filters;

  __device__ TapPerStep(const GatherProduct<T>& p, Shared& shared, int group, int first_result, int first_pixel,
                        int first_step)
      : product(p), taps(shared), own(p, group, first_result, first_pixel) {
    const Tap first = tap_at(p, first_step);
    const std::int64_t place = static_cast<int>(own.place + first.in) + std::int64_t{own.b_row} * plane_of(p.in);
    in = own.in + place;
    mask = masked ? own.mask + place : nullptr;
    filters = own.filters + (first.w + std::int64_t{own.a_k} * p.w_channel);
  }

  __device__ static Tap tap_at(const GatherProduct<T>& p, int step) {
    const Divided channels = divide(static_cast<unsigned>(step), p.by_taps);
    return tap_of(p, channels.quotient * Tile::bk, channels.remainder);
  }

  static constexpr bool by_one_thread_unmasked = !masked;
  __device__ static bool looks_ahead() { return threadIdx.x == 0; }
  __device__ void ahead(const GatherProduct<T>& p, int step) {
    const Tap here = tap_at(p, step), next = tap_at(p, step + 1);
    taps[step & 1] = {next.in - here.in, here.row, here.column, next.w - here.w};
  }

  __device__ void load(int step, T (&a)[Tile::loads_a], T (&b)[Tile::loads_b]) {
    const Tap tap = taps[step & 1];
    const bool counts = own.has(product, tap);
    const unsigned plane = plane_of(product.in), results = static_cast<unsigned>(product.w_result);
#pragma unroll
    for (int i = 0; i < Tile::loads_b; ++i)
      b[i] = bring<masked>(in, mask, std::uint64_t{plane} * (i * own.b_rows), counts);
#pragma unroll
    for (int i = 0; i < Tile::loads_a; ++i)
      a[i] = i * own.a_rows < own.results ? filters[std::uint64_t{results} * (i * own.a_rows)] : T(0);
    in += static_cast<int>(tap.in);
    if constexpr (masked) mask += static_cast<int>(tap.in);
    filters += static_cast<int>(tap.w);
  }
};

template <class T, class Tile, bool masked>
struct TapPerElement {
  using Shared = Tap[2][Tile::bk];

  const GatherProduct<T>& product;
  Shared& taps;
  const Share<T, Tile> own;
  const int depth;

  __device__ TapPerElement(const GatherProduct<T>& p, Shared& shared, int group, int first_result, int first_pixel, int)
      : product(p),
        taps(shared),
        own(p, group, first_result, first_pixel),
        depth(p.depth * p.rows.taps * p.columns.taps) {}

  static constexpr bool by_one_thread_unmasked = false;
  __device__ static bool looks_ahead() { return static_cast<int>(threadIdx.x) < Tile::bk; }
  __device__ void ahead(const GatherProduct<T>& p, int step) const {
    const int thread = static_cast<int>(threadIdx.x);
    const Divided channel = divide(static_cast<unsigned>(step * Tile::bk + thread), p.by_taps);
    taps[step & 1][thread] = tap_of(p, channel.quotient, channel.remainder);
  }

  __device__ void load(int step, T (&a)[Tile::loads_a], T (&b)[Tile::loads_b]) const {
    const int left = depth - step * Tile::bk;
#pragma unroll
    for (int i = 0; i < Tile::loads_b; ++i) {
      const int k = own.b_row + i * own.b_rows;
      const Tap tap = taps[step & 1][k];
      b[i] = bring<masked>(own.in, own.mask, own.place + tap.in, k < left && own.has(product, tap));
    }
    const int results = own.a_k < left ? own.results : 0;
    const T* const filters = own.filters + (results > 0 ? taps[step & 1][own.a_k].w : 0);
#pragma unroll
    for (int i = 0; i < Tile::loads_a; ++i)
      a[i] = i * own.a_rows < results
                 ? filters[std::uint64_t{static_cast<unsigned>(product.w_result)} * (i * own.a_rows)]
                 : T(0);
  }
};

/// Writes all results of a thread, in packs of `width` pixels. `channel` and `left` are the block's first channel and
/// the number of channels from there on. With `adds` and `relu`, the results are clamped at 0 here, because the old
/// contents are read only now.
template <class Tile, int width, bool adds, class T>
__device__ void write(const GatherProduct<T>& product, T* range, int channel, int left, int first_pixel,
                      const T (&sums)[Tile::tm][Tile::tn]) {
  const unsigned plane = plane_of(product.out);
  const std::int64_t first_row = channel + Tile::row(0);
#pragma unroll
  for (int j = 0; j < Tile::tn; j += width) {
    const int number = first_pixel + Tile::column(j);
    if (number >= product.pixels) continue;
    const Pixel pixel = pixel_of(product, number);
    T* const to = range + (pixel.n * product.out.pitch + first_row * plane + place_of(product, pixel));
#pragma unroll
    for (int i = 0; i < Tile::tm; ++i) {
      if (Tile::row(i) >= left) continue;
      Pack<T, width> pack;
#pragma unroll
      for (int k = 0; k < width; ++k) pack.v[k] = sums[i][j + k];
      T* const place = to + std::uint64_t{plane} * Tile::row_step(i);
      adds ? put_pack(place, pack, true, product.relu) : store_pack(place, pack);
    }
  }
}

}  // namespace lamina::LAMINA_CUDA_SPACE
