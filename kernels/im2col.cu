// Columns of a convolution and their sum back into an image. One thread writes one element: of the columns a copy or
// 0, of the image a sum over its at most R x S copies, in a fixed order, so that no atomics are needed and the bits
// are the same in every run.

#include "im2col.h"

#include "elements.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
__global__ void im2col_kernel(ConvGeometry g, View<const T> x, View<T> columns) {
  const auto plane = static_cast<int>(columns.plane());
  for_each_element(columns, [&](int n, std::int64_t i) {
    const auto line = static_cast<int>(i / plane), pixel = static_cast<int>(i % plane);
    const int s = line % g.kernel_w, r = line / g.kernel_w % g.kernel_h, c = line / g.kernel_w / g.kernel_h;
    const int row = pixel / columns.w * g.stride_h - g.pad_h + r * g.dilation_h;
    const int column = pixel % columns.w * g.stride_w - g.pad_w + s * g.dilation_w;
    const bool inside = row >= 0 && row < x.h && column >= 0 && column < x.w;
    columns.at(n, 0)[i] = inside ? x.at(n, c)[std::int64_t{row} * x.w + column] : T(0);
  });
}

template <class T>
__global__ void col2im_kernel(ConvGeometry g, View<const T> columns, View<T> dx, bool adds) {
  const auto plane = static_cast<int>(dx.plane());
  for_each_element(dx, [&](int n, std::int64_t i) {
    const auto c = static_cast<int>(i / plane), pixel = static_cast<int>(i % plane);
    T sum = adds ? dx.at(n, 0)[i] : T(0);
    for (int r = 0; r < g.kernel_h; ++r) {
      const int down = pixel / dx.w + g.pad_h - r * g.dilation_h;
      if (down < 0 || down % g.stride_h != 0 || down / g.stride_h >= columns.h) continue;
      for (int s = 0; s < g.kernel_w; ++s) {
        const int across = pixel % dx.w + g.pad_w - s * g.dilation_w;
        if (across < 0 || across % g.stride_w != 0 || across / g.stride_w >= columns.w) continue;
        const T* line = columns.at(n, (c * g.kernel_h + r) * g.kernel_w + s);
        sum += line[std::int64_t{down / g.stride_h} * columns.w + across / g.stride_w];
      }
    }
    dx.at(n, 0)[i] = sum;
  });
}

}  // namespace

template <class T>
void im2col(Stream stream, const ConvGeometry& g, View<const T> x, View<T> columns) {
  launch(LAMINA_KERNEL(im2col_kernel<T>), grid_of_elements(columns), elements_per_block, 0, stream, g, x, columns);
}

template <class T>
void col2im(Stream stream, const ConvGeometry& g, View<const T> columns, View<T> dx, bool adds) {
  launch(LAMINA_KERNEL(col2im_kernel<T>), grid_of_elements(dx), elements_per_block, 0, stream, g, columns, dx, adds);
}

template void im2col(Stream, const ConvGeometry&, View<const float>, View<float>);
template void im2col(Stream, const ConvGeometry&, View<const double>, View<double>);
template void col2im(Stream, const ConvGeometry&, View<const float>, View<float>, bool);
template void col2im(Stream, const ConvGeometry&, View<const double>, View<double>, bool);

}  // namespace lamina::LAMINA_CUDA_SPACE
