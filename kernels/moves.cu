// Pad: y = x inside a border, a constant in it. Channel shuffle: channel i groups + g of y is channel g C/groups + i
// of x. Both and their gradients: one thread for one element of what is written.
// Per element written: at most one read, and one more if it adds.

#include "moves.h"

#include "kernels/common/planes.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
__global__ void pad_forward_kernel(View<const T> x, Border border, T value, View<T> y) {
  for_each_pixel(y, [&](int n, int c, int p, int q, std::int64_t i) {
    const int h = p - border.top, w = q - border.left;
    const bool inside = h >= 0 && h < x.h && w >= 0 && w < x.w;
    y.at(n, 0)[i] = inside ? x.at(n, c)[std::int64_t{h} * x.w + w] : value;
  });
}

template <class T>
__global__ void pad_backward_kernel(View<const T> dy, Border border, View<T> dx, bool adds) {
  for_each_pixel(dx, [&](int n, int c, int h, int w, std::int64_t i) {
    put(dx.at(n, 0)[i], dy.at(n, c)[std::int64_t{h + border.top} * dy.w + w + border.left], adds);
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

template void pad_forward(Stream, View<const float>, Border, float, View<float>);
template void pad_forward(Stream, View<const double>, Border, double, View<double>);
template void pad_backward(Stream, View<const float>, Border, View<float>, bool);
template void pad_backward(Stream, View<const double>, Border, View<double>, bool);
template void channel_shuffle(Stream, View<const float>, View<float>, int, bool);
template void channel_shuffle(Stream, View<const double>, View<double>, int, bool);

}  // namespace lamina::LAMINA_CUDA_SPACE
