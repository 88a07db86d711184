// Batch normalisation, forward: y = scale[c] (x - mean[c]) / sqrt(variance[c] + epsilon) + shift[c], then optionally +
// other and max(y, 0).
//
// Training takes three launches. Sums: a block for a slice of a channel (channel_sums.h) sums differences from the
// channel's first value, in double. Cancellation is limited to the spread of the channel, so one pass is
// enough. Statistics: a warp for a channel. Apply: a thread for a pack of 16 bytes of an image. A pack may begin in one
// channel and end in the next, so planes of any size move in packs. The last image comes first, because the sums have
// just read it.
// Per element: two reads of x, one of other, one write. On devices with few double units (compute capability 7.5 and
// 8.6) these units limit the sums.

#include "batch_norm.h"

#include <cmath>

#include "kernels/common/channel_sums.h"
#include "kernels/common/clamp_at_zero.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T, int width>
__global__ void batch_norm_sums_kernel(View<const T> x, Sums* partial) {
  const int c = static_cast<int>(blockIdx.x);
  const double origin = static_cast<double>(load(*x.at(0, c)));
  Sums sums;
  for_each_pack_of_slice<width>(x.n, x.plane(), [&](int n, std::int64_t i) {
    const Loaded<T, width> pack = load_pack<width>(x.at(n, c) + i);
    for (const auto value : pack.v) {
      const double d = static_cast<double>(value) - origin;
      sums.first += d;
      sums.second += d * d;
    }
  });
  store_partial(sums, partial);
}

template <class T>
__device__ NormChannel<T> channel_of(double mean, double variance, const NormNumbers<T>& numbers, int c) {
  const double inverse = 1 / std::sqrt(variance + numbers.epsilon);
  return {mean, inverse, static_cast<Computed<T>>(mean),
          static_cast<Computed<T>>(static_cast<double>(numbers.scale[c]) * inverse), numbers.shift[c]};
}

template <class T>
__device__ void advance(T& running, double batch, double momentum) {
  running = static_cast<T>((1 - momentum) * static_cast<double>(running) + momentum * batch);
}

template <class T>
__global__ void batch_norm_statistics_kernel(View<const T> x, const Sums* partial, int slices, NormNumbers<T> numbers,
                                             NormChannel<T>* channels) {
  const int c = static_cast<int>(blockIdx.x);
  const Sums sums = sum_partials(partial, c, slices);
  if (threadIdx.x != 0) return;
  const auto count = static_cast<double>(x.n * x.plane());
  const double offset = sums.first / count, mean = static_cast<double>(load(*x.at(0, c))) + offset;
  const double spread = sums.second / count - offset * offset, variance = spread > 0 ? spread : 0;
  channels[c] = channel_of(mean, variance, numbers, c);
  advance(numbers.running_mean[c], mean, numbers.momentum);
  advance(numbers.running_variance[c], variance * (count / (count - 1)), numbers.momentum);
}

template <class T>
__global__ void batch_norm_from_running_kernel(int count, NormNumbers<T> numbers, NormChannel<T>* channels) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= count) return;
  channels[c] = channel_of(static_cast<double>(numbers.running_mean[c]),
                           static_cast<double>(numbers.running_variance[c]), numbers, c);
}

template <class T, int width>
__global__ void batch_norm_apply_kernel(Extent extent, std::int64_t plane, Images<const T> x, Images<const T> other,
                                        bool relu, const NormChannel<T>* channels, Images<T> y) {
  for_each_pack<width>(extent, [&](int from_last, std::int64_t i) {
    const int n = extent.images - 1 - from_last;  // the sums have just read it; it may still be in the L2 cache
    Loaded<T, width> value = load_pack<width>(x.at(n) + i);
    ChannelWalk<NormChannel<T>> channel(channels, plane, i);
    for (int k = 0; k < width; ++k) {
      value.v[k] = std::fma(value.v[k] - (*channel).centre, (*channel).factor, (*channel).shift);
      if (k + 1 < width) channel.step();
    }
    if (other.data != nullptr) {
      const Loaded<T, width> more = load_pack<width>(other.at(n) + i);
      for (int k = 0; k < width; ++k) value.v[k] += more.v[k];
    }
    if (relu)
      for (auto& v : value.v) v = clamp_at_zero(v);
    store_pack(y.at(n) + i, value);
  });
}

}  // namespace

std::size_t batch_norm_statistics_bytes(int channels, std::int64_t count) {
  return channel_sums_bytes(channels, count);
}

template <class T>
void batch_norm_statistics(Stream stream, View<const T> x, const NormNumbers<T>& numbers, NormChannel<T>* channels,
                           void* workspace) {
  auto* const partial = static_cast<Sums*>(workspace);
  const std::int64_t count = x.n * x.plane();
  const int width = packs_of_planes(x);
  const dim3 grid = grid_of_slices(x.c, count);
  if (width == 1) {
    launch(LAMINA_KERNEL(batch_norm_sums_kernel<T, 1>), grid, sum_threads, 0, stream, x, partial);
  } else {
    launch(LAMINA_KERNEL(batch_norm_sums_kernel<T, widest<T>>), grid, sum_threads, 0, stream, x, partial);
  }
  launch(LAMINA_KERNEL(batch_norm_statistics_kernel<T>), static_cast<unsigned>(x.c), lanes, 0, stream, x, partial,
         slices_of(x.c, count), numbers, channels);
}

template <class T>
void batch_norm_from_running(Stream stream, int count, const NormNumbers<T>& numbers, NormChannel<T>* channels) {
  launch(LAMINA_KERNEL(batch_norm_from_running_kernel<T>), blocks_for(count, pack_threads), pack_threads, 0, stream,
         count, numbers, channels);
}

template <class T>
void batch_norm_apply(Stream stream, View<const T> x, View<const T> other, bool relu, const NormChannel<T>* channels,
                      View<T> y) {
  with_packs<T>(
      false,
      [&](auto w, Extent extent) {
        constexpr int width = decltype(w)::value;
        launch(LAMINA_KERNEL(batch_norm_apply_kernel<T, width>), grid_of_packs(extent, width), pack_threads, 0, stream,
               extent, y.plane(), x, other, relu, channels, y);
      },
      y, x, other);
}

#define LAMINA_INSTANTIATE(T)                                                                                \
  template void batch_norm_statistics(Stream, View<const T>, const NormNumbers<T>&, NormChannel<T>*, void*); \
  template void batch_norm_from_running(Stream, int, const NormNumbers<T>&, NormChannel<T>*);                \
  template void batch_norm_apply(Stream, View<const T>, View<const T>, bool, const NormChannel<T>*, View<T>);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
