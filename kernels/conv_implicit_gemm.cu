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
// and are added in order by a second kernel.
//
// A block makes bm results m by bn pixels (gemm_tile.h). A thread keeps to one pixel while it brings elements of the
// second factor, so that where the pixel lies is worked out once; where a tap lies is worked out once per block and
// tile, by bk threads, two tiles ahead. Pixels are neighbours along a row: a warp's loads are, with stride 1, too.
// Per block and tile: (bm + bn) bk elements from global memory for bm bn bk multiply-adds.

#include "conv_implicit_gemm.h"

#include "conv_tiles.h"
#include "cut_at_zero.h"
#include "elements.h"
#include "fast_divide.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// row of `in` = index * step + base + tap * by, and where the result of `index` lies: index * out_step + out_base.
struct ProductAxis {
  int step, base, by;
  int out_step, out_base;
  int count;                    ///< of results
  int taps, tap_first, tap_by;  ///< tap i of the product is tap_first + i tap_by of the filter
};

template <class T>
struct GatherProduct {
  ProductAxis rows, columns;
  int groups, results, depth;  ///< of a group: results m, and channels to sum over
  View<const T> in, mask;      ///< in counts only where the mask, if there is one, is above 0
  const T* w;
  std::int64_t w_group, w_result, w_channel;  ///< elements from one to the next
  int w_row;                                  ///< taps of a row of the filter
  const T* bias;
  bool relu, adds;
  View<T> out;
  FastDivide by_columns, by_rows, by_taps, by_row_taps;
  int pixels;
  int splits, tiles_per_split;  ///< ranges of k, and their length
  T* partial;                   ///< with more than one range: split, image, channel, pixel of the product
};

/// Where an element of k lies, relative to a pixel's place in `in` and to a filter.
struct Tap {
  int in, row, column, w;
};

template <class T>
__device__ Tap tap_of(const GatherProduct<T>& product, int k) {
  const Divided channel = divide(static_cast<unsigned>(k), product.by_taps);
  const Divided tap = divide(channel.remainder, product.by_row_taps);
  const int c = static_cast<int>(channel.quotient), r = static_cast<int>(tap.quotient);
  const int s = static_cast<int>(tap.remainder), row = r * product.rows.by, column = s * product.columns.by;
  const int filter_row = product.rows.tap_first + r * product.rows.tap_by;
  const int filter_column = product.columns.tap_first + s * product.columns.tap_by;
  return {static_cast<int>(c * product.in.plane()) + row * product.in.w + column, row, column,
          static_cast<int>(c * product.w_channel) + filter_row * product.w_row + filter_column};
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

/// Bias, ReLU, old content: one result, written where it belongs.
template <class T>
__device__ void finish(const GatherProduct<T>& product, const Pixel& pixel, int channel, T value) {
  if (product.bias != nullptr) value += product.bias[channel];
  if (product.relu) value = cut_at_zero(value);
  const std::int64_t place = std::int64_t{pixel.row * product.rows.out_step + product.rows.out_base} * product.out.w +
                             pixel.column * product.columns.out_step + product.columns.out_base;
  put(product.out.at(pixel.n, channel)[place], value, product.adds);
}

/// Blocks that the compiler is to leave registers for on a multiprocessor.
template <class Tile>
constexpr int blocks_at_once = Tile::threads == 256 ? 2 : 3;

template <class T, class Tile>
__global__ __launch_bounds__(Tile::threads,
                             blocks_at_once<Tile>) void conv_gather_product_kernel(GatherProduct<T> product) {
  __shared__ typename Tile::Shared shared;
  __shared__ Tap taps[2][Tile::bk];
  const int group = static_cast<int>(blockIdx.z) / product.splits,
            split = static_cast<int>(blockIdx.z) % product.splits;
  const int first_result = static_cast<int>(blockIdx.y) * Tile::bm,
            first_pixel = static_cast<int>(blockIdx.x) * Tile::bn;
  const int k_count = product.depth * product.rows.taps * product.columns.taps;
  const int thread = static_cast<int>(threadIdx.x);

  // This thread's pixel, to bring, and its filters.
  constexpr int b_rows = Tile::threads / Tile::bn, a_rows = Tile::threads / Tile::bk;
  static_assert(Tile::threads % Tile::bn == 0 && Tile::threads % Tile::bk == 0);
  const int b_column = thread % Tile::bn, b_row = thread / Tile::bn, a_k = thread % Tile::bk, a_row = thread / Tile::bk;
  const bool b_inside = first_pixel + b_column < product.pixels;
  const Pixel own = pixel_of(product, b_inside ? first_pixel + b_column : 0);
  const int in_row = own.row * product.rows.step + product.rows.base;
  const int in_column = own.column * product.columns.step + product.columns.base;
  const std::int64_t in_place = std::int64_t{in_row} * product.in.w + in_column;
  const T* const in = product.in.at(own.n, group * product.depth);
  const T* const mask = product.mask.data == nullptr ? nullptr : product.mask.at(own.n, group * product.depth);
  const T* const filters = product.w + group * product.w_group;

  T sums[Tile::tm][Tile::tn] = {};
  const int tiles = (k_count + Tile::bk - 1) / Tile::bk, first_tile = split * product.tiles_per_split;
  Tile::run(
      shared, first_tile, min(first_tile + product.tiles_per_split, tiles), sums,
      [&](int tile, T(&a)[Tile::loads_a], T(&b)[Tile::loads_b]) {
        const Tap* const tap = taps[tile & 1];
        const bool a_inside = tile * Tile::bk + a_k < k_count;
#pragma unroll
        for (int i = 0; i < Tile::loads_a; ++i) {
          const int m = first_result + a_row + i * a_rows;
          a[i] = a_inside && m < product.results ? filters[m * product.w_result + tap[a_k].w] : T(0);
        }
#pragma unroll
        for (int i = 0; i < Tile::loads_b; ++i) {
          const int k = b_row + i * b_rows;
          const Tap t = tap[k];
          const bool inside = b_inside && tile * Tile::bk + k < k_count &&
                              static_cast<unsigned>(in_row + t.row) < static_cast<unsigned>(product.in.h) &&
                              static_cast<unsigned>(in_column + t.column) < static_cast<unsigned>(product.in.w);
          const std::int64_t at = in_place + t.in;
          b[i] = inside && (mask == nullptr || mask[at] > T(0)) ? in[at] : T(0);
        }
      },
      [&](typename Tile::Shared& to, int half, const T(&a)[Tile::loads_a], const T(&b)[Tile::loads_b]) {
#pragma unroll
        for (int i = 0; i < Tile::loads_a; ++i) to.a[half][a_k][a_row + i * a_rows] = a[i];
#pragma unroll
        for (int i = 0; i < Tile::loads_b; ++i) to.b[half][b_row + i * b_rows][b_column] = b[i];
      },
      [&](int tile) {
        if (thread < Tile::bk) taps[tile & 1][thread] = tap_of(product, tile * Tile::bk + thread);
      });

#pragma unroll
  for (int j = 0; j < Tile::tn; ++j) {
    const int number = first_pixel + Tile::column(j);
    if (number >= product.pixels) continue;
    const Pixel pixel = pixel_of(product, number);
#pragma unroll
    for (int i = 0; i < Tile::tm; ++i) {
      const int m = first_result + Tile::row(i);
      if (m >= product.results) continue;
      const int channel = group * product.results + m;
      if (product.splits == 1) {
        finish(product, pixel, channel, sums[i][j]);
      } else {
        const std::int64_t plane = std::int64_t{product.rows.count} * product.columns.count;
        const std::int64_t image = (std::int64_t{split} * product.out.n + pixel.n) * product.out.c + channel;
        product.partial[image * plane + std::int64_t{pixel.row} * product.columns.count + pixel.column] = sums[i][j];
      }
    }
  }
}

/// The ranges' sums of every result, added in order. `all` is what one range has of them.
template <class T>
__global__ void conv_gather_sum_kernel(GatherProduct<T> product, View<T> all) {
  for_each_element(all, [&](int n, std::int64_t i) {
    const Divided row = divide(static_cast<unsigned>(i), product.by_columns);
    const Divided channel = divide(row.quotient, product.by_rows);
    T sum = T(0);
    for (int split = 0; split < product.splits; ++split)
      sum += product.partial[(std::int64_t{split} * all.n + n) * all.pitch + i];
    finish(product, {n, static_cast<int>(channel.remainder), static_cast<int>(row.remainder)},
           static_cast<int>(channel.quotient), sum);
  });
}

/// Ranges of k, so that a large device has two blocks for each multiprocessor, but none with fewer than 16 tiles.
int splits_of(std::int64_t results, std::int64_t pixels, std::int64_t groups, std::int64_t depth) {
  constexpr std::int64_t blocks_wanted = 2 * large_device, least_tiles = 16, most = 16;
  const std::int64_t blocks = (results + 63) / 64 * ((pixels + 63) / 64) * groups, tiles = (depth + 7) / 8;
  return static_cast<int>(std::clamp<std::int64_t>(
      std::min(blocks_wanted / std::max<std::int64_t>(blocks, 1), tiles / least_tiles), 1, most));
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
  if (splits == 0) splits = splits_of(product.results, product.pixels, product.groups, depth);
  product.splits = splits;
  with_conv_tile<T, 8>(tile, product.results, product.pixels, std::int64_t{product.groups} * splits, [&](auto chosen) {
    using Tile = decltype(chosen);
    const int tiles = (depth + Tile::bk - 1) / Tile::bk;
    product.tiles_per_split = (tiles + splits - 1) / splits;
    const dim3 grid(static_cast<unsigned>((product.pixels + Tile::bn - 1) / Tile::bn),
                    static_cast<unsigned>((product.results + Tile::bm - 1) / Tile::bm),
                    static_cast<unsigned>(product.groups * splits));
    launch(LAMINA_KERNEL(conv_gather_product_kernel<T, Tile>), grid, Tile::threads, 0, stream, product);
  });
  if (splits == 1) return;
  const int h = product.rows.count, w = product.columns.count;
  const View<T> all{nullptr, product.out.n, product.out.c, h, w, std::int64_t{product.out.c} * h * w};
  launch(LAMINA_KERNEL(conv_gather_sum_kernel<T>), grid_of_elements(all), elements_per_block, 0, stream, product, all);
}

/// Bytes of the sums of a product's ranges.
template <class T>
std::size_t range_bytes(const GatherProduct<T>& product, int splits) {
  const std::int64_t pixels = std::int64_t{product.out.n} * product.rows.count * product.columns.count;
  const std::int64_t depth = std::int64_t{product.depth} * product.rows.taps * product.columns.taps;
  if (splits == 0) splits = splits_of(product.results, pixels, product.groups, depth);
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
  product.w_result = std::int64_t{product.depth} * taps;
  product.w_group = product.results * product.w_result;
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
  product.w_channel = std::int64_t{product.results} * taps;
  product.w_group = product.depth * product.w_channel;
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
void conv_implicit_gemm_forward(Stream stream, const ConvGeometry& g, View<const T> x, const T* w, const T* bias,
                                View<T> y, bool relu, T* partial, int splits, ConvTile tile) {
  GatherProduct<T> product = forward_product(g, x, y);
  product.w = w;
  product.bias = bias;
  product.relu = relu;
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
  template void conv_implicit_gemm_forward(Stream, const ConvGeometry&, View<const T>, const T*, const T*, View<T>,   \
                                           bool, T*, int, ConvTile);                                                  \
  template void conv_implicit_gemm_backward_data(Stream, const ConvGeometry&, const T*, const Masked<T>&, View<T>,    \
                                                 bool, T*, int, ConvTile);
LAMINA_INSTANTIATE(float)
LAMINA_INSTANTIATE(double)
#undef LAMINA_INSTANTIATE

}  // namespace lamina::LAMINA_CUDA_SPACE
