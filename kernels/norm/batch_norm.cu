// Batch normalisation, forward: y = scale[c] (x - mean[c]) / sqrt(variance[c] + epsilon) + shift[c], then optionally +
// other and a function.
//
// Training takes three launches. Sums: a block for a slice of a channel (channel_sums.h) sums differences from the
// channel's first value, in double. Cancellation is limited to the spread of the channel, so one pass is enough.
// Statistics: one warp for each channel. Apply: a thread writes a pack of 16 bytes of an image. A pack may begin in one
// channel and end in the next, so planes of any size move in packs. The last image comes first, because the sums have
// just read it. Group normalisation takes the same launches: a channel is then a group of one image, and the second
// launch makes the values of the channels of an image from the statistics of its groups. Per element: two reads of x,
// one of other, one write. On devices with few double units (compute capability 7.5 and 8.6) these units limit the
// sums.

#include "batch_norm.h"

#include <cmath>

#include "kernels/common/channel_sums.h"
#include "kernels/functions.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T, int width>
__global__ void batch_norm_sums_kernel(View<const T> x, int images, Sums* partial) {
  const unsigned channels = static_cast<unsigned>(x.c);
  const int c = static_cast<int>(blockIdx.x % channels), first = static_cast<int>(blockIdx.x / channels);
  const double origin = static_cast<double>(load(*x.at(first, c)));
  Sums sums;
  for_each_pack_of_slice<width>(images, x.plane(), [&](int n, std::int64_t i) {
    const Loaded<T, width> pack = load_pack<width>(x.at(first + n, c) + i);
    for (const auto value : pack.v) {
      const double d = static_cast<double>(value) - origin;
      sums.first += d;
      sums.second += d * d;
    }
  });
  store_partial(sums, partial);
}

/// Mean and biased variance from the sums of differences from `origin`.
struct Moments {
  double mean, variance;
};
__device__ Moments moments_of(const Sums& sums, double origin, double count) {
  const double offset = sums.first / count, spread = sums.second / count - offset * offset;
  return {origin + offset, spread > 0 ? spread : 0};
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
  const Moments of = moments_of(sums, static_cast<double>(load(*x.at(0, c))), count);
  channels[c] = channel_of(of.mean, of.variance, numbers, c);
  advance(numbers.running_mean[c], of.mean, numbers.momentum);
  advance(numbers.running_variance[c], of.variance * (count / (count - 1)), numbers.momentum);
}

/// The channels of a group, each with its own factor and shift. `x` has groups as channels.
template <class T>
__global__ void group_norm_statistics_kernel(View<const T> x, const Sums* partial, int slices, GroupNumbers<T> numbers,
                                             int members, NormChannel<T>* saved, NormChannel<T>* channels) {
  const int i = static_cast<int>(blockIdx.x), n = i / x.c, group = i % x.c;
  const Moments of = moments_of(sum_partials(partial, i, slices), static_cast<double>(load(*x.at(n, group))),
                                static_cast<double>(x.plane()));
  NormChannel<T> channel{of.mean, 1 / std::sqrt(of.variance + numbers.epsilon), static_cast<Computed<T>>(of.mean), 0,
                         0};
  if (threadIdx.x == 0 && saved != nullptr) saved[i] = channel;
  for (int k = static_cast<int>(threadIdx.x); k < members; k += lanes) {
    const std::int64_t c = std::int64_t{group} * members + k;
    const double scale = numbers.scale == nullptr ? 1 : static_cast<double>(numbers.scale[c]);
    channel.factor = static_cast<Computed<T>>(scale * channel.inverse_deviation);
    channel.shift = numbers.shift == nullptr ? 0 : numbers.shift[c];
    channels[std::int64_t{i} * members + k] = channel;
  }
}

template <class T>
__global__ void batch_norm_from_running_kernel(int count, NormNumbers<T> numbers, NormChannel<T>* channels) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= count) return;
  channels[c] = channel_of(static_cast<double>(numbers.running_mean[c]),
                           static_cast<double>(numbers.running_variance[c]), numbers, c);
}

template <class T, int width, class F>
__global__ void batch_norm_apply_kernel(Extent extent, std::int64_t plane, Images<const T> x, Images<const T> other,
                                        F f, Images<const NormChannel<T>> channels, Images<T> y) {
  for_each_pack<width>(extent, [&](int from_last, std::int64_t i) {
    const int n = extent.images - 1 - from_last;  // the sums have just read it; it may still be in the L2 cache
    Loaded<T, width> value = load_pack<width>(x.at(n) + i);
    ChannelWalk<NormChannel<T>> channel(channels.at(n), plane, i);
    for (int k = 0; k < width; ++k) {
      value.v[k] = std::fma(value.v[k] - (*channel).centre, (*channel).factor, (*channel).shift);
      if (k + 1 < width) channel.step();
    }
    if (other.data != nullptr) {
      const Loaded<T, width> more = load_pack<width>(other.at(n) + i);
      for (int k = 0; k < width; ++k) value.v[k] += more.v[k];
    }
    for (auto& v : value.v) v = f.value(v);
    store_pack(y.at(n) + i, value);
  });
}

/// The sums over all images, or over each image: `images` images are summed together.
template <class T>
void launch_sums(Stream stream, View<const T> x, int images, Sums* partial) {
  const std::int64_t count = images * x.plane();
  const dim3 grid = grid_of_slices(x.n / images * x.c, count);
  const int threads = sum_threads_for(count);
  with_packs_of_planes<T>(
      [&](auto width) {
        launch(LAMINA_KERNEL(batch_norm_sums_kernel<T, width()>), grid, threads, 0, stream, x, images, partial);
      },
      x);
}

/// `channels` has values for each image or, with a pitch of 0, for all.
template <class T>
void launch_apply(Stream stream, View<const T> x, View<const T> other, const PointwiseFunction& function,
                  Images<const NormChannel<T>> channels, View<T> y) {
  with_ending<T>(function, [&](auto f) {
    packing_of<T>(false, y, x, other).launch_by(stream, [&](auto width, auto start) {
      start(LAMINA_KERNEL(batch_norm_apply_kernel<T, width(), decltype(f)>), y.plane(), x, other, f, channels, y);
    });
  });
}

}  // namespace

template <class T>
void batch_norm_statistics(Stream stream, View<const T> x, const NormNumbers<T>& numbers, NormChannel<T>* channels,
                           void* workspace) {
  auto* const partial = static_cast<Sums*>(workspace);
  launch_sums(stream, x, x.n, partial);
  launch(LAMINA_KERNEL(batch_norm_statistics_kernel<T>), static_cast<unsigned>(x.c), lanes, 0, stream, x, partial,
         slices_of(x.c, x.n * x.plane()), numbers, channels);
}

template <class T>
void batch_norm_from_running(Stream stream, int count, const NormNumbers<T>& numbers, NormChannel<T>* channels) {
  launch(LAMINA_KERNEL(batch_norm_from_running_kernel<T>), blocks_for(count, pack_threads), pack_threads, 0, stream,
         count, numbers, channels);
}

template <class T>
void batch_norm_apply(Stream stream, View<const T> x, View<const T> other, const PointwiseFunction& function,
                      const NormChannel<T>* channels, View<T> y) {
  launch_apply<T>(stream, x, other, function, {channels, 0}, y);
}

template <class T>
std::size_t group_norm_forward_bytes(int images, int channels, std::int64_t plane, int groups) {
  return channel_sums_bytes(images * groups, channels / groups * plane) +
         static_cast<std::size_t>(images) * static_cast<std::size_t>(channels) * sizeof(NormChannel<T>);
}

template <class T>
void group_norm_forward(Stream stream, View<const T> x, const GroupNumbers<T>& numbers, NormChannel<T>* saved,
                        View<T> y, void* workspace) {
  const int members = x.c / numbers.groups, all = x.n * numbers.groups;
  View<const T> groups = x;
  groups.c = numbers.groups;
  groups.h *= members;
  auto* const partial = static_cast<Sums*>(workspace);
  auto* const channels =
      reinterpret_cast<NormChannel<T>*>(static_cast<char*>(workspace) + channel_sums_bytes(all, groups.plane()));
  launch_sums(stream, groups, 1, partial);
  launch(LAMINA_KERNEL(group_norm_statistics_kernel<T>), static_cast<unsigned>(all), lanes, 0, stream, groups, partial,
         slices_of(all, groups.plane()), numbers, members, saved, channels);
  launch_apply<T>(stream, x, {}, {}, {channels, x.c}, y);
}

#define LAMINA_INSTANTIATE(T)                                                                                \
  template void batch_norm_statistics(Stream, View<const T>, const NormNumbers<T>&, NormChannel<T>*, void*); \
  template void batch_norm_from_running(Stream, int, const NormNumbers<T>&, NormChannel<T>*);                \
  template void batch_norm_apply(Stream, View<const T>, View<const T>, const PointwiseFunction&,             \
                                 const NormChannel<T>*, View<T>);                                            \
  template std::size_t group_norm_forward_bytes<T>(int, int, std::int64_t, int);                             \
  template void group_norm_forward(Stream, View<const T>, const GroupNumbers<T>&, NormChannel<T>*, View<T>, void*);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
