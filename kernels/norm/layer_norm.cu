// Layer normalisation: y = scale[c] xh + shift[c], xh = (x - mean) / deviation over the channels of a pixel. With
// g = scale[c] dy: dx = (g - mean of g - xh * mean of g xh) / deviation; dscale[c] = sum of dy xh, dshift[c] = sum of
// dy.
//
// Maps: a block takes 32 pixels in a row, also of several images, and 8 threads share the channels of a pixel. Vectors:
// a warp takes an image, and its lanes share the channels. Sums are of differences from the first channel, in double.
// Per element: two reads of x, one of them from a cache, and one write; backward two reads of x and dy each. For the
// gradients of scale and shift, a block sums a slice of a channel (channel_sums.h), and reads x and dy once.

#include "layer_norm.h"

#include <cmath>

#include "kernels/common/channel_sums.h"
#include "kernels/common/elements.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int sharers = 8;  // threads of a map's pixel, or vectors of a block

/// The pixel of this thread, and the channels that it takes: from `first` on, `step` apart.
template <bool vectors>
struct Pixel {
  std::int64_t number, image, place;
  int first, step = vectors ? lanes : sharers;
  bool valid;

  template <class T>
  __device__ explicit Pixel(const View<T>& x) {
    const int lane = static_cast<int>(threadIdx.x) % lanes, row = static_cast<int>(threadIdx.x) / lanes;
    number = vectors ? std::int64_t{blockIdx.x} * sharers + row : std::int64_t{blockIdx.x} * lanes + lane;
    first = vectors ? lane : row;
    valid = number < x.n * x.plane();
    image = valid ? number / x.plane() : 0;
    place = valid ? number % x.plane() : 0;
  }
  /// Calls body(channel, its distance from the first one in elements).
  template <class Body>
  __device__ void for_each_channel(int channels, std::int64_t plane, Body body) const {
    for (int c = first; valid && c < channels; c += step) body(c, c * plane);
  }
};

/// Adds the sums of the threads that share a pixel. Every thread of the block calls it, once.
template <bool vectors>
__device__ Sums pixel_sums(Sums sums) {
  if (vectors) return {reduce_warp(sums.first, Plus()), reduce_warp(sums.second, Plus())};
  LAMINA_SHARED(double[sharers][lanes], first);
  LAMINA_SHARED(double[sharers][lanes], second);
  const int lane = static_cast<int>(threadIdx.x) % lanes, row = static_cast<int>(threadIdx.x) / lanes;
  first[row][lane] = sums.first;
  second[row][lane] = sums.second;
  __syncthreads();
  sums = {first[0][lane], second[0][lane]};
  for (int i = 1; i < sharers; ++i) {
    sums.first += first[i][lane];
    sums.second += second[i][lane];
  }
  return sums;
}

template <class T>
__device__ T number_of(const T* numbers, int c, T without) {
  return numbers == nullptr ? without : numbers[c];
}

template <class T, bool vectors>
__global__ void layer_norm_forward_kernel(View<const T> x, const Computed<T>* scale, const Computed<T>* shift,
                                          double epsilon, PixelStatistics<T>* saved, View<T> y) {
  using Number = Computed<T>;
  const Pixel<vectors> pixel(x);
  const std::int64_t plane = x.plane();
  const T* const from = x.at(static_cast<int>(pixel.image), 0) + pixel.place;
  const double origin = static_cast<double>(load(*from));
  Sums sums;
  pixel.for_each_channel(x.c, plane, [&](int, std::int64_t i) {
    const double d = static_cast<double>(load(from[i])) - origin;
    sums.first += d;
    sums.second += d * d;
  });
  sums = pixel_sums<vectors>(sums);
  const double offset = sums.first / x.c, spread = sums.second / x.c - offset * offset;
  const PixelStatistics<T> of{static_cast<Number>(origin + offset),
                              static_cast<Number>(1 / std::sqrt((spread > 0 ? spread : 0) + epsilon))};
  if (pixel.valid && pixel.first == 0 && saved != nullptr) saved[pixel.number] = of;
  T* const to = y.at(static_cast<int>(pixel.image), 0) + pixel.place;
  pixel.for_each_channel(x.c, plane, [&](int c, std::int64_t i) {
    const Number normalised = (load(from[i]) - of.mean) * of.inverse_deviation;
    store(to[i], std::fma(normalised, number_of(scale, c, Number(1)), number_of(shift, c, Number(0))));
  });
}

template <class T, bool vectors>
__global__ void layer_norm_backward_kernel(View<const T> x, View<const T> dy, const Computed<T>* scale,
                                           const PixelStatistics<T>* saved, View<T> dx, bool adds) {
  using Number = Computed<T>;
  const Pixel<vectors> pixel(x);
  const std::int64_t plane = x.plane();
  const int n = static_cast<int>(pixel.image);
  const T *const from = x.at(n, 0) + pixel.place, *const gradient = dy.at(n, 0) + pixel.place;
  const PixelStatistics<T> of = saved[pixel.valid ? pixel.number : 0];
  Sums sums;
  pixel.for_each_channel(x.c, plane, [&](int c, std::int64_t i) {
    const Number g = load(gradient[i]) * number_of(scale, c, Number(1));
    sums.first += static_cast<double>(g);
    sums.second += static_cast<double>(g * ((load(from[i]) - of.mean) * of.inverse_deviation));
  });
  sums = pixel_sums<vectors>(sums);
  const double inverse = static_cast<double>(of.inverse_deviation);
  const Number slope = static_cast<Number>(-inverse * inverse * sums.second / x.c);
  const Number offset = static_cast<Number>(-inverse * sums.first / x.c);
  T* const to = dx.at(n, 0) + pixel.place;
  pixel.for_each_channel(x.c, plane, [&](int c, std::int64_t i) {
    const Number g = load(gradient[i]) * number_of(scale, c, Number(1));
    put(to[i], std::fma(of.inverse_deviation, g, std::fma(load(from[i]) - of.mean, slope, offset)), adds);
  });
}

template <class T, int width>
__global__ void layer_norm_sums_kernel(View<const T> x, View<const T> dy, const PixelStatistics<T>* saved,
                                       Sums* partial) {
  const int c = static_cast<int>(blockIdx.x);
  Sums sums;
  for_each_pack_of_slice<width>(x.n, x.plane(), [&](int n, std::int64_t i) {
    const Loaded<T, width> values = load_pack<width>(x.at(n, c) + i), gradients = load_pack<width>(dy.at(n, c) + i);
    const PixelStatistics<T>* const of = saved + n * x.plane() + i;
    for (int k = 0; k < width; ++k) {
      const Computed<T> normalised = (values.v[k] - of[k].mean) * of[k].inverse_deviation;
      sums.first += static_cast<double>(gradients.v[k]) * static_cast<double>(normalised);
      sums.second += static_cast<double>(gradients.v[k]);
    }
  });
  store_partial(sums, partial);
}

template <class T>
unsigned blocks_of(const View<T>& x, int pixels) {
  return static_cast<unsigned>(divide_up(x.n * x.plane(), pixels));
}

}  // namespace

template <class T>
void layer_norm_forward(Stream stream, View<const T> x, const Computed<T>* scale, const Computed<T>* shift,
                        double epsilon, PixelStatistics<T>* saved, View<T> y) {
  if (x.plane() == 1)
    launch(LAMINA_KERNEL(layer_norm_forward_kernel<T, true>), blocks_of(x, sharers), sharers * lanes, 0, stream, x,
           scale, shift, epsilon, saved, y);
  else
    launch(LAMINA_KERNEL(layer_norm_forward_kernel<T, false>), blocks_of(x, lanes), sharers * lanes, 0, stream, x,
           scale, shift, epsilon, saved, y);
}

template <class T>
void layer_norm_backward(Stream stream, View<const T> x, View<const T> dy, const Computed<T>* scale,
                         const PixelStatistics<T>* saved, View<T> dx, bool adds) {
  if (x.plane() == 1)
    launch(LAMINA_KERNEL(layer_norm_backward_kernel<T, true>), blocks_of(x, sharers), sharers * lanes, 0, stream, x, dy,
           scale, saved, dx, adds);
  else
    launch(LAMINA_KERNEL(layer_norm_backward_kernel<T, false>), blocks_of(x, lanes), sharers * lanes, 0, stream, x, dy,
           scale, saved, dx, adds);
}

template <class T>
void layer_norm_gradient(Stream stream, View<const T> x, View<const T> dy, const PixelStatistics<T>* saved,
                         Computed<T>* dscale, Computed<T>* dshift, bool adds, void* partial) {
  auto* const sums = static_cast<Sums*>(partial);
  const std::int64_t count = x.n * x.plane();
  const dim3 grid = grid_of_slices(x.c, count);
  with_packs_of_planes<T>(
      [&](auto width) {
        launch(LAMINA_KERNEL(layer_norm_sums_kernel<T, width()>), grid, sum_threads_for(count), 0, stream, x, dy, saved,
               sums);
      },
      x, dy);
  put_channel_sums(stream, sums, 1, x.c, slices_of(x.c, count), dscale, dshift, adds);
}

#define LAMINA_INSTANTIATE(T)                                                                                      \
  template void layer_norm_forward(Stream, View<const T>, const Computed<T>*, const Computed<T>*, double,          \
                                   PixelStatistics<T>*, View<T>);                                                  \
  template void layer_norm_backward(Stream, View<const T>, View<const T>, const Computed<T>*,                      \
                                    const PixelStatistics<T>*, View<T>, bool);                                     \
  template void layer_norm_gradient(Stream, View<const T>, View<const T>, const PixelStatistics<T>*, Computed<T>*, \
                                    Computed<T>*, bool, void*);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
