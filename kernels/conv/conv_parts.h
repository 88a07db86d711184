#pragma once
// The sizes of a convolution's products: forward, and the data gradient with its classes of pixels. Pixels whose
// row and column have the same remainders by the strides share the same taps of the filters.

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "conv_gather.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The pixels with index mod stride = phase, and their taps.
inline ProductAxis phase_axis(int phase, int stride, int pad, int dilation, int kernel, int extent) {
  ProductAxis axis{
      1, 0, 0, stride, phase, divide_up(extent - phase, stride), 0, 0, stride / std::gcd(dilation, stride)};
  axis.by = -axis.tap_by * dilation / stride;
  for (int tap = 0; tap < std::min(kernel, axis.tap_by); ++tap) {
    const int reach = phase + pad - tap * dilation;
    if (reach % stride != 0) continue;
    axis.tap_first = tap;
    axis.base = reach / stride;
    axis.taps = divide_up(kernel - tap, axis.tap_by);
    break;
  }
  return axis;
}

/// Rows and columns of every class of pixels of an h x w image; the classes with most taps come first.
inline std::vector<std::pair<ProductAxis, ProductAxis>> pixel_classes(const ConvGeometry& g, int h, int w) {
  std::vector<std::pair<ProductAxis, ProductAxis>> classes;
  for (int down = 0; down < std::min(g.stride_h, h); ++down)
    for (int across = 0; across < std::min(g.stride_w, w); ++across)
      classes.emplace_back(phase_axis(down, g.stride_h, g.pad_h, g.dilation_h, g.kernel_h, h),
                           phase_axis(across, g.stride_w, g.pad_w, g.dilation_w, g.kernel_w, w));
  std::stable_sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) {
    return a.first.taps * a.second.taps > b.first.taps * b.second.taps;
  });
  return classes;
}

/// The part that has these rows and columns, without its ranges.
template <class T>
ProductPart<T> part_of(const ProductAxis& rows, const ProductAxis& columns, const View<T>& out, bool adds) {
  ProductPart<T> part{};
  part.rows = rows;
  part.columns = columns;
  const int row_taps = std::max(columns.taps, 1), taps = std::max(rows.taps, 1) * row_taps;
  part.by_columns = FastDivide(columns.count);
  part.by_rows = FastDivide(rows.count);
  part.by_row_taps = FastDivide(row_taps);
  part.by_taps = FastDivide(taps);
  part.pixels = out.n * rows.count * columns.count;
  part.out = out;
  part.adds = adds;
  return part;
}

/// A product without its data, from channels of `in` to channels of `out`. The filters are dense along the sum, as in
/// forward, or along the results, as in the data gradient.
template <class T>
GatherProduct<T> gather_product(const ConvGeometry& g, const View<const T>& in, const View<T>& out, bool along_sum) {
  const int taps = g.kernel_h * g.kernel_w;
  GatherProduct<T> product{};
  product.groups = g.groups;
  product.results = out.c / g.groups;
  product.depth = in.c / g.groups;
  product.in = in;
  product.w_channel = along_sum ? taps : product.results * taps;
  product.w_result = along_sum ? product.depth * taps : taps;
  product.w_group = std::int64_t{product.results} * product.depth * taps;
  product.w_row = g.kernel_w;
  return product;
}

/// The product of forward, and its one part.
template <class T>
GatherProduct<T> forward_product(const ConvGeometry& g, const View<const T>& x, const View<T>& y) {
  return gather_product(g, x, y, true);
}
template <class T>
std::vector<ProductPart<T>> forward_parts(const ConvGeometry& g, const View<T>& y) {
  if (y.n * y.plane() == 0) return {};
  return {part_of({g.stride_h, -g.pad_h, g.dilation_h, 1, 0, y.h, g.kernel_h, 0, 1},
                  {g.stride_w, -g.pad_w, g.dilation_w, 1, 0, y.w, g.kernel_w, 0, 1}, y, false)};
}

template <class T>
GatherProduct<T> data_product(const ConvGeometry& g, const View<const T>& dy, const View<T>& dx) {
  return gather_product(g, dy, dx, false);
}

/// Calls body(parts) with the data gradient's classes of pixels, as many at a time as a launch takes. Pixels without
/// taps are skipped if the result is added to old contents.
template <class T, class Body>
void for_each_launch(const ConvGeometry& g, const View<T>& dx, bool adds, int splits, Body body) {
  std::vector<ProductPart<T>> parts;
  if (dx.n * dx.plane() == 0) return;
  for (const auto& [rows, columns] : pixel_classes(g, dx.h, dx.w))
    if (!adds || rows.taps * columns.taps > 0) parts.push_back(part_of(rows, columns, dx, adds));
  // The rule gives several ranges only if all blocks together are few.
  const std::size_t most = std::clamp(65535 / (g.groups * std::max(splits, 1)), 1, GatherProducts<T>::most);
  for (std::size_t first = 0; first < parts.size(); first += most)
    body(
        std::vector<ProductPart<T>>(parts.begin() + static_cast<std::ptrdiff_t>(first),
                                    parts.begin() + static_cast<std::ptrdiff_t>(std::min(first + most, parts.size()))));
}

}  // namespace lamina::LAMINA_CUDA_SPACE
