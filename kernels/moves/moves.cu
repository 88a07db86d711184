// Pad: y is x inside a border; the border is a constant or shows cells of x. Channel shuffle: channel i groups + g of y
// is channel g C/groups + i of x. In both ops and their gradients, one thread writes one element. Per element written:
// at most one read, and one more if it adds. In the gradient of a border that shows cells, there is one read for each
// border cell that may show the element.

#include "moves.h"

#include "kernels/common/planes.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// The cell that the border shows `position` cells from the first one, along an axis of the image. It is outside the
/// image only for a constant border.
__device__ inline int shown(BorderOf of, int position, int extent) {
  if (position >= 0 && position < extent) return position;
  if (of == BorderOf::edge) return position < 0 ? 0 : extent - 1;
  if (of == BorderOf::reflect) return position < 0 ? -position : extent - 1 - (position - (extent - 1));
  if (of == BorderOf::wrap) return position < 0 ? position + extent : position - extent;
  return position;
}

template <class T>
__global__ void pad_forward_kernel(View<const T> x, Border border, T value, View<T> y) {
  for_each_pixel(y, [&](int n, int c, int p, int q, std::int64_t i) {
    const int h = shown(border.of, p - border.top, x.h), w = shown(border.of, q - border.left, x.w);
    const bool inside = h >= 0 && h < x.h && w >= 0 && w < x.w;
    y.at(n, 0)[i] = inside ? x.at(n, c)[std::int64_t{h} * x.w + w] : value;
  });
}

/// Calls visit(row or column of y) for those that show a cell, in ascending order.
template <class Visit>
__device__ void for_each_showing(BorderOf of, int cell, int before, int extent, int padded, Visit visit) {
  if (of != BorderOf::value)
    for (int p = 0; p < before; ++p)
      if (shown(of, p - before, extent) == cell) visit(p);
  visit(before + cell);
  if (of != BorderOf::value)
    for (int p = before + extent; p < padded; ++p)
      if (shown(of, p - before, extent) == cell) visit(p);
}

template <class T>
__global__ void pad_backward_kernel(View<const T> dy, Border border, View<T> dx, bool adds) {
  for_each_pixel(dx, [&](int n, int c, int h, int w, std::int64_t i) {
    const T* gradients = dy.at(n, c);
    T sum = 0;
    for_each_showing(border.of, h, border.top, dx.h, dy.h, [&](int p) {
      for_each_showing(border.of, w, border.left, dx.w, dy.w,
                       [&](int q) { sum += gradients[std::int64_t{p} * dy.w + q]; });
    });
    put(dx.at(n, 0)[i], sum, adds);
  });
}

template <class T>
__global__ void channel_shuffle_kernel(View<const T> from, View<T> to, int groups, bool adds) {
  const auto plane = static_cast<unsigned>(to.plane());
  for_each_element(to, [&](int n, std::int64_t i) {
    const auto element = static_cast<unsigned>(i);
    const int c = static_cast<int>(element / plane), source = c % groups * (to.c / groups) + c / groups;
    put(to.at(n, 0)[i], from.at(n, source)[element % plane], adds);
  });
}

}  // namespace

template <class T>
void pad_forward(Stream stream, View<const T> x, Border border, T value, View<T> y) {
  launch(LAMINA_KERNEL(pad_forward_kernel<T>), grid_of_elements(y), elements_per_block, 0, stream, x, border, value, y);
}

template <class T>
void pad_backward(Stream stream, View<const T> dy, Border border, View<T> dx, bool adds) {
  launch(LAMINA_KERNEL(pad_backward_kernel<T>), grid_of_elements(dx), elements_per_block, 0, stream, dy, border, dx,
         adds);
}

template <class T>
void channel_shuffle(Stream stream, View<const T> from, View<T> to, int groups, bool adds) {
  launch(LAMINA_KERNEL(channel_shuffle_kernel<T>), grid_of_elements(to), elements_per_block, 0, stream, from, to,
         groups, adds);
}

#define LAMINA_INSTANTIATE(T)                                               \
  template void pad_forward(Stream, View<const T>, Border, T, View<T>);     \
  template void pad_backward(Stream, View<const T>, Border, View<T>, bool); \
  template void channel_shuffle(Stream, View<const T>, View<T>, int, bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
