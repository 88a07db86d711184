// Columns of a convolution, and their sum back into an image. For the columns, a thread writes the window of one pixel
// in one channel: R x S elements, each a copy or 0. The pixel's position is computed once for all of them. For the
// image, a thread writes one element, a sum over at most R x S copies in a fixed order. So no atomics are needed, and
// the bits are the same in every run.

#include "im2col.h"

#include "kernels/common/elements.h"
#include "kernels/common/fast_divide.h"
#include "kernels/common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// The divisions that split a pixel's index over all channels: by the pixels of a channel, and by the pixels of a row.
struct ColumnDivisors {
  FastDivide plane, width;
};

template <class T>
__global__ void im2col_kernel(ConvGeometry g, ColumnDivisors by, View<const T> x, View<T> columns) {
  const std::int64_t plane = columns.plane();
  for_each_pack<1>(Extent{x.n, x.c * plane}, [&](int n, std::int64_t i) {
    const Divided channel = divide(static_cast<unsigned>(i), by.plane), pixel = divide(channel.remainder, by.width);
    const auto c = static_cast<int>(channel.quotient);
    const int first_row = static_cast<int>(pixel.quotient) * g.stride_h - g.pad_h;
    const int first_column = static_cast<int>(pixel.remainder) * g.stride_w - g.pad_w;
    const T* const from = x.at(n, c);
    T* to = columns.at(n, c * g.kernel_h * g.kernel_w) + channel.remainder;
    // A row of taps is short: unrolling would leave only remainders.
#pragma unroll 1
    for (int r = 0, row = first_row; r < g.kernel_h; ++r, row += g.dilation_h) {
      const int width = static_cast<unsigned>(row) < static_cast<unsigned>(x.h) ? x.w : 0;  // 0 outside of the image
      const T* const line = from + std::int64_t{row} * width;
#pragma unroll 1
      for (int s = 0, column = first_column; s < g.kernel_w; ++s, column += g.dilation_w, to += plane)
        *to = static_cast<unsigned>(column) < static_cast<unsigned>(width) ? line[column] : T(0);
    }
  });
}

/// The divisions that split a pixel's index, and its distance from a tap.
struct ImageDivisors {
  FastDivide plane, width, stride_h, stride_w;
};

template <class T>
__global__ void col2im_kernel(ConvGeometry g, ImageDivisors by, View<const T> columns, View<T> dx, bool adds) {
  for_each_element(dx, [&](int n, std::int64_t i) {
    const Divided channel = divide(static_cast<unsigned>(i), by.plane), pixel = divide(channel.remainder, by.width);
    const auto c = static_cast<int>(channel.quotient);
    T sum = adds ? dx.at(n, 0)[i] : T(0);
    for (int r = 0; r < g.kernel_h; ++r) {
      const int down = static_cast<int>(pixel.quotient) + g.pad_h - r * g.dilation_h;
      if (down < 0) continue;
      const Divided row = divide(static_cast<unsigned>(down), by.stride_h);
      if (row.remainder != 0 || row.quotient >= static_cast<unsigned>(columns.h)) continue;
      for (int s = 0; s < g.kernel_w; ++s) {
        const int across = static_cast<int>(pixel.remainder) + g.pad_w - s * g.dilation_w;
        if (across < 0) continue;
        const Divided column = divide(static_cast<unsigned>(across), by.stride_w);
        if (column.remainder != 0 || column.quotient >= static_cast<unsigned>(columns.w)) continue;
        const T* line = columns.at(n, (c * g.kernel_h + r) * g.kernel_w + s);
        sum += line[std::int64_t{row.quotient} * columns.w + column.quotient];
      }
    }
    dx.at(n, 0)[i] = sum;
  });
}

}  // namespace

template <class T>
void im2col(Stream stream, const ConvGeometry& g, View<const T> x, View<T> columns) {
  const ColumnDivisors by{FastDivide(columns.h * columns.w), FastDivide(columns.w)};
  launch(LAMINA_KERNEL(im2col_kernel<T>), grid_of_packs({x.n, x.c * columns.plane()}, 1), pack_threads, 0, stream, g,
         by, x, columns);
}

template <class T>
void col2im(Stream stream, const ConvGeometry& g, View<const T> columns, View<T> dx, bool adds) {
  const ImageDivisors by{FastDivide(dx.h * dx.w), FastDivide(dx.w), FastDivide(g.stride_h), FastDivide(g.stride_w)};
  launch(LAMINA_KERNEL(col2im_kernel<T>), grid_of_elements(dx), elements_per_block, 0, stream, g, by, columns, dx,
         adds);
}

#define LAMINA_INSTANTIATE(T)                                                \
  template void im2col(Stream, const ConvGeometry&, View<const T>, View<T>); \
  template void col2im(Stream, const ConvGeometry&, View<const T>, View<T>, bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
