// ScaleShift: y = scale x + shift, and its gradient dx = scale dy, which is the same without a shift. PReLU: y = x
// where x is above 0, else scale x, and dx from dy in the same way.
//
// A thread computes one pack of 16 bytes, image by image along the grid's y. Per element: one read and one write.
//
// The gradients of learned numbers are two sums, in double: a block sums a slice of a channel (channel_sums.h), then a
// warp adds the slices of a channel, or of all channels. Per element: two reads.

#include "scale_shift.h"

#include "kernels/common/channel_sums.h"
#include "kernels/common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T, int width>
__global__ void scale_shift_kernel(Extent extent, ScaleAndShift<T> by, Images<const T> x, Images<T> y, bool adds) {
  const auto run = static_cast<unsigned>(by.run);
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Pack<T, width> pack = load_pack<width>(x.at(n) + i);
    for (int k = 0; k < width; ++k) {
      const unsigned at = (static_cast<unsigned>(i) + static_cast<unsigned>(k)) / run;
      pack.v[k] = by.shift == nullptr ? by.scale[at] * pack.v[k] : by.scale[at] * pack.v[k] + by.shift[at];
    }
    put_pack(y.at(n) + i, pack, adds);
  });
}

template <class T, int width>
__global__ void prelu_kernel(Extent extent, ScaleAndShift<T> by, Images<const T> x, Images<const T> v, Images<T> y,
                             bool adds) {
  const auto run = static_cast<unsigned>(by.run);
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    const Pack<T, width> of = load_pack<width>(x.at(n) + i);
    Pack<T, width> pack = load_pack<width>(v.at(n) + i);
    for (int k = 0; k < width; ++k)
      if (!(of.v[k] > T(0))) pack.v[k] *= by.scale[(static_cast<unsigned>(i) + static_cast<unsigned>(k)) / run];
    put_pack(y.at(n) + i, pack, adds);
  });
}

template <class T, int width, bool below>
__global__ void scale_shift_sums_kernel(View<const T> x, View<const T> dy, Sums* partial) {
  const int c = static_cast<int>(blockIdx.x);
  Sums sums;
  for_each_pack_of_slice<width>(dy.n, dy.plane(), [&](int n, std::int64_t i) {
    const auto of_x = load_pack<width>(x.at(n, c) + i), of_dy = load_pack<width>(dy.at(n, c) + i);
    for (int k = 0; k < width; ++k) {
      if (!below || !(of_x.v[k] > T(0))) sums.first += static_cast<double>(of_dy.v[k]) * static_cast<double>(of_x.v[k]);
      sums.second += static_cast<double>(of_dy.v[k]);
    }
  });
  store_partial(sums, partial);
}

}  // namespace

template <class T>
void scale_shift(Stream stream, const ScaleAndShift<T>& by, View<const T> x, View<T> y, bool adds) {
  packing_of<T>(false, y, x).launch_by(stream, [&](auto width, auto start) {
    start(LAMINA_KERNEL(scale_shift_kernel<T, width()>), by, x, y, adds);
  });
}

template <class T>
void prelu(Stream stream, const ScaleAndShift<T>& by, View<const T> x, View<const T> v, View<T> y, bool adds) {
  packing_of<T>(false, y, x, v).launch_by(stream, [&](auto width, auto start) {
    start(LAMINA_KERNEL(prelu_kernel<T, width()>), by, x, v, y, adds);
  });
}

template <class T>
void scale_shift_gradient(Stream stream, View<const T> x, View<const T> dy, T* dscale, T* dshift, bool by_channel,
                          bool adds, void* partial) {
  auto* const sums = static_cast<Sums*>(partial);
  const std::int64_t count = dy.n * dy.plane();
  const int slices = slices_of(dy.c, count);
  const auto add_up = [&](auto below) {
    with_packs_of_planes<T>(
        [&](auto width) {
          launch(LAMINA_KERNEL(scale_shift_sums_kernel<T, width(), decltype(below)::value>),
                 grid_of_slices(dy.c, count), sum_threads, 0, stream, x, dy, sums);
        },
        x, dy);
  };
  dshift == nullptr ? add_up(std::true_type()) : add_up(std::false_type());
  put_channel_sums(stream, sums, 1, by_channel ? dy.c : 1, by_channel ? slices : dy.c * slices, dscale, dshift, adds);
}

#define LAMINA_INSTANTIATE(T)                                                                          \
  template void scale_shift_gradient(Stream, View<const T>, View<const T>, T*, T*, bool, bool, void*); \
  template void scale_shift(Stream, const ScaleAndShift<T>&, View<const T>, View<T>, bool);            \
  template void prelu(Stream, const ScaleAndShift<T>&, View<const T>, View<const T>, View<T>, bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
