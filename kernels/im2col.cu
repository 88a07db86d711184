// Columns of a convolution and their sum back into an image. One thread writes one element: of the columns a copy or
// 0, of the image a sum over its at most R x S copies, in a fixed order, so that no atomics are needed and the bits
// are the same in every run.

#include "im2col.h"

#include "elements.h"
#include "fast_divide.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// Divisions of an element's number: by the plane and row of its image, by the taps of a filter and of its row.
struct ColumnDivisors {
  FastDivide plane, width, taps, row_taps;
};

template <class T>
__global__ void im2col_kernel(ConvGeometry g, ColumnDivisors by, View<const T> x, View<T> columns) {
  for_each_element(columns, [&](int n, std::int64_t i) {
    const Divided line = divide(static_cast<unsigned>(i), by.plane), pixel = divide(line.remainder, by.width);
    const Divided channel = divide(line.quotient, by.taps), tap = divide(channel.remainder, by.row_taps);
    const auto c = static_cast<int>(channel.quotient), r = static_cast<int>(tap.quotient);
    const auto s = static_cast<int>(tap.remainder);
    const int row = static_cast<int>(pixel.quotient) * g.stride_h - g.pad_h + r * g.dilation_h;
    const int column = static_cast<int>(pixel.remainder) * g.stride_w - g.pad_w + s * g.dilation_w;
    const bool inside = row >= 0 && row < x.h && column >= 0 && column < x.w;
    columns.at(n, 0)[i] = inside ? x.at(n, c)[std::int64_t{row} * x.w + column] : T(0);
  });
}

/// Divisions of a pixel's number, and of its distance from a tap.
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
  const ColumnDivisors by{FastDivide(columns.h * columns.w), FastDivide(columns.w), FastDivide(g.kernel_h * g.kernel_w),
                          FastDivide(g.kernel_w)};
  launch(LAMINA_KERNEL(im2col_kernel<T>), grid_of_elements(columns), elements_per_block, 0, stream, g, by, x, columns);
}

template <class T>
void col2im(Stream stream, const ConvGeometry& g, View<const T> columns, View<T> dx, bool adds) {
  const ImageDivisors by{FastDivide(dx.h * dx.w), FastDivide(dx.w), FastDivide(g.stride_h), FastDivide(g.stride_w)};
  launch(LAMINA_KERNEL(col2im_kernel<T>), grid_of_elements(dx), elements_per_block, 0, stream, g, by, columns, dx,
         adds);
}

template void im2col(Stream, const ConvGeometry&, View<const float>, View<float>);
template void im2col(Stream, const ConvGeometry&, View<const double>, View<double>);
template void col2im(Stream, const ConvGeometry&, View<const float>, View<float>, bool);
template void col2im(Stream, const ConvGeometry&, View<const double>, View<double>, bool);

}  // namespace lamina::LAMINA_CUDA_SPACE
