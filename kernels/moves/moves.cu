// Pad: y is x inside a border; the border is a constant or copies cells of x. Reorder, and parts of images: an element
// of y is an element of x. A thread has the place of one element, and finds the other element by a division for each
// axis. In all ops and their gradients, one thread writes one element, except if two axes of f32 change places: that is
// a transpose. Per element written: at most one read, and one more if it adds. In the gradient of a border that copies
// cells, there is one read for each border cell that copies the element.

#include "moves.h"

#include "kernels/common/elements.h"
#include "kernels/common/fast_divide.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// The cell of the image that a border cell copies, along one axis. `position` counts from the image's first cell. The
/// result is outside the image only for a constant border.
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
    const int from = c - border.front;
    const bool inside = from >= 0 && from < x.c && h >= 0 && h < x.h && w >= 0 && w < x.w;
    y.at(n, 0)[i] = inside ? x.at(n, from)[std::int64_t{h} * x.w + w] : value;
  });
}

/// Calls visit(row or column of y) for each row or column that copies a cell, in ascending order.
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
    const T* gradients = dy.at(n, border.front + c);
    T sum = 0;
    for_each_showing(border.of, h, border.top, dx.h, dy.h, [&](int p) {
      for_each_showing(border.of, w, border.left, dx.w, dy.w,
                       [&](int q) { sum += gradients[std::int64_t{p} * dy.w + q]; });
    });
    put(dx.at(n, 0)[i], sum, adds);
  });
}

/// An axis of the tensor that is copied whole: its extent, and its stride in the other tensor.
struct Step {
  FastDivide extent;
  unsigned apart = 0;
};
template <int count>
struct Steps {
  Step axes[count];  // the innermost first
};

template <bool spreads, class T, int count>
__global__ void reorder_kernel(View<const T> from, Steps<count> steps, View<T> to, bool adds) {
  const auto move = [&](int n, std::int64_t i) {
    auto left = static_cast<unsigned>(i), other = 0U;
    for (const Step& step : steps.axes) {
      const Divided place = divide(left, step.extent);
      other += place.remainder * step.apart;
      left = place.quotient;
    }
    put(to.at(n, 0)[spreads ? other : i], load(from.at(n, 0)[spreads ? i : other]), adds);
  };
  if constexpr (spreads)
    for_each_element(from, move);
  else
    for_each_element(to, move);
}

template <bool spreads, class T, int count>
void launch_reorder(Stream stream, View<const T> from, const ReorderAxes& axes, View<T> to, bool adds) {
  Steps<count> steps;
  for (int i = 0; i < axes.count; ++i) {
    const auto& axis = axes.axes[axes.count - 1 - i];
    steps.axes[i] = {FastDivide(axis.extent), static_cast<unsigned>(spreads ? axis.to : axis.from)};
  }
  const dim3 grid = spreads ? grid_of_elements(from) : grid_of_elements(to);
  launch(LAMINA_KERNEL(reorder_kernel<spreads, T, count>), grid, elements_per_block, 0, stream, from, steps, to, adds);
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
void reorder(Stream stream, View<const T> from, const ReorderAxes& axes, View<T> to, bool adds, bool spreads) {
  if constexpr (std::is_same_v<T, float>)
    if (const auto& a = axes.axes[0], &b = axes.axes[1]; axes.count == 2 && a.from == 1 && !adds)
      return transpose<T, T>(stream, {from.data, from.n, b.extent, a.extent, b.from, from.pitch},
                             {to.data, to.n, a.extent, b.extent, a.to, to.pitch});
  if (spreads) return launch_reorder<true, T, 4>(stream, from, axes, to, adds);
  axes.count <= 4 ? launch_reorder<false, T, 4>(stream, from, axes, to, adds)
                  : launch_reorder<false, T, 8>(stream, from, axes, to, adds);
}

#define LAMINA_INSTANTIATE(T)                                           \
  template void pad_forward(Stream, View<const T>, Border, T, View<T>); \
  template void pad_backward(Stream, View<const T>, Border, View<T>, bool);
#define LAMINA_INSTANTIATE_REORDER(T) \
  template void reorder(Stream, View<const T>, const ReorderAxes&, View<T>, bool, bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE_REORDER)

}  // namespace lamina::LAMINA_CUDA_SPACE
