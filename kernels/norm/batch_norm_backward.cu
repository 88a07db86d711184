// Batch normalisation, backward. With x-hat = (x - mean) / deviation and dz the gradient of the normalised value, which
// is dy, or dy times the slope of the function that follows:
//   dshift[c] = sum dz      dscale[c] = sum dz x-hat      dother = dz
//   dx = scale[c] / deviation (dz - dshift[c] / count - x-hat dscale[c] / count)
//
// Three launches, as in forward: a block for a slice of a channel adds up dz and dz (x - mean) in double; a warp for a
// channel computes dscale, dshift and the coefficients of dx; a thread for a pack of 16 bytes writes dx and dother.
// A group norm takes the same launches by channels of images, without a mask, and one more for dscale and dshift. Its
// second launch adds up the channels of a group.
// Per element: two reads of x and of dy (and of y, if it gives the mask), one write of each gradient.

#include <cmath>

#include "batch_norm.h"
#include "kernels/common/channel_sums.h"
#include "kernels/functions.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// dx = factor dz + (x - centre) slope + offset; the last two numbers are forward's.
template <class T>
struct Slopes {
  Computed<T> centre, factor, slope, offset, forward_factor, forward_shift;
};

template <NormMask mask, class T>
__device__ T masked(const AnyFunction<T>& f, T dy, T x, T y, T centre, T factor, T shift) {
  if constexpr (mask == NormMask::from_y) return y > T(0) ? dy : T(0);
  if constexpr (mask == NormMask::from_x) return std::fma(x - centre, factor, shift) > T(0) ? dy : T(0);
  if constexpr (mask == NormMask::function) return f.gradient_at(std::fma(x - centre, factor, shift), dy);
  return dy;
}

template <class T, NormMask mask, int width>
__global__ void batch_norm_gradient_sums_kernel(AnyFunction<Computed<T>> f, View<const T> x, View<const T> y,
                                                View<const T> dy, int images, const NormChannel<T>* channels,
                                                int members, Sums* partial) {
  const unsigned all = static_cast<unsigned>(x.c);
  const int c = static_cast<int>(blockIdx.x % all), first = static_cast<int>(blockIdx.x / all);
  const NormChannel<T> channel = channels[blockIdx.x / static_cast<unsigned>(members)];
  Sums sums;
  for_each_pack_of_slice<width>(images, x.plane(), [&](int image, std::int64_t i) {
    const int n = first + image;
    const Loaded<T, width> values = load_pack<width>(x.at(n, c) + i), gradients = load_pack<width>(dy.at(n, c) + i);
    const Loaded<T, width> results = mask == NormMask::from_y ? load_pack<width>(y.at(n, c) + i) : gradients;
    for (int k = 0; k < width; ++k) {
      const auto d = static_cast<double>(
          masked<mask>(f, gradients.v[k], values.v[k], results.v[k], channel.centre, channel.factor, channel.shift));
      sums.first += d;
      sums.second += d * (static_cast<double>(values.v[k]) - channel.mean);
    }
  });
  sums.second *= channel.inverse_deviation;
  store_partial(sums, partial);
}

template <class T>
__device__ void put_sum(T* to, int c, double value, bool adds) {
  if (to != nullptr) to[c] = adds ? to[c] + static_cast<T>(value) : static_cast<T>(value);
}

template <class T>
__global__ void batch_norm_slopes_kernel(const Sums* partial, int slices, double count, const NormChannel<T>* channels,
                                         const Computed<T>* scale, Computed<T>* dscale, Computed<T>* dshift, bool adds,
                                         Slopes<T>* slopes) {
  const int c = static_cast<int>(blockIdx.x);
  const Sums sums = sum_partials(partial, c, slices);
  if (threadIdx.x != 0) return;
  const NormChannel<T> channel = channels[c];
  const double shift_sum = sums.first, scale_sum = sums.second;
  put_sum(dscale, c, scale_sum, adds);
  put_sum(dshift, c, shift_sum, adds);
  const double factor = static_cast<double>(scale[c]) * channel.inverse_deviation;
  slopes[c] = {channel.centre,
               static_cast<Computed<T>>(factor),
               static_cast<Computed<T>>(-factor * channel.inverse_deviation * scale_sum / count),
               static_cast<Computed<T>>(-factor * shift_sum / count),
               channel.factor,
               channel.shift};
}

template <class T>
__global__ void group_norm_slopes_kernel(const Sums* partial, int slices, double count, const NormChannel<T>* saved,
                                         const Computed<T>* scale, int groups, int members, Slopes<T>* slopes) {
  const int i = static_cast<int>(blockIdx.x);
  const NormChannel<T> group = saved[i];
  const std::int64_t first = std::int64_t{i} * members;  // channel of an image
  const Computed<T>* const scales = scale == nullptr ? nullptr : scale + std::int64_t{i % groups} * members;
  const auto scale_of = [&](int k) { return scales == nullptr ? 1.0 : static_cast<double>(scales[k]); };
  Sums sums;
  for (int k = static_cast<int>(threadIdx.x); k < members; k += lanes)
    for (int slice = 0; slice < slices; ++slice) {
      const Sums part = partial[(first + k) * slices + slice];
      sums.first += scale_of(k) * part.first;
      sums.second += scale_of(k) * part.second;
    }
  sums = {reduce_warp(sums.first, Plus()), reduce_warp(sums.second, Plus())};
  const double inverse = group.inverse_deviation;
  for (int k = static_cast<int>(threadIdx.x); k < members; k += lanes)
    slopes[first + k] = {group.centre,
                         static_cast<Computed<T>>(scale_of(k) * inverse),
                         static_cast<Computed<T>>(-inverse * inverse * sums.second / count),
                         static_cast<Computed<T>>(-inverse * sums.first / count),
                         0,
                         0};
}

template <class T, NormMask mask, int width>
__global__ void batch_norm_gradient_kernel(Extent extent, AnyFunction<Computed<T>> f, std::int64_t plane,
                                           Images<const T> x, Images<const T> y, Images<const T> dy,
                                           Images<const Slopes<T>> slopes, Images<T> dx, bool adds_dx, Images<T> dother,
                                           bool adds_dother) {
  for_each_pack<width>(extent, [&](int from_last, std::int64_t i) {
    const int n = extent.images - 1 - from_last;  // the sums have just read it; it may still be in the L2 cache
    const Loaded<T, width> values = load_pack<width>(x.at(n) + i);
    Loaded<T, width> dz = load_pack<width>(dy.at(n) + i), d;
    const Loaded<T, width> results = mask == NormMask::from_y ? load_pack<width>(y.at(n) + i) : dz;
    ChannelWalk<Slopes<T>> channel(slopes.at(n), plane, i);
    for (int k = 0; k < width; ++k) {
      const Slopes<T> of = *channel;
      dz.v[k] = masked<mask>(f, dz.v[k], values.v[k], results.v[k], of.centre, of.forward_factor, of.forward_shift);
      d.v[k] = std::fma(of.factor, dz.v[k], std::fma(values.v[k] - of.centre, of.slope, of.offset));
      if (k + 1 < width) channel.step();
    }
    if (dother.data != nullptr) put_pack(dother.at(n) + i, dz, adds_dother);
    if (dx.data != nullptr) put_pack(dx.at(n) + i, d, adds_dx);
  });
}

/// The sums of each channel over all images, or over each image: `images` images are summed together. `members`
/// channels have one mean.
template <class T, NormMask mask>
void launch_sums(Stream stream, const PointwiseFunction& function, View<const T> x, View<const T> y, View<const T> dy,
                 int images, const NormChannel<T>* channels, int members, Sums* partial) {
  const AnyFunction<Computed<T>> f(function);
  const std::int64_t count = images * x.plane();
  const dim3 grid = grid_of_slices(x.n / images * x.c, count);
  const int threads = sum_threads_for(count);
  with_packs_of_planes<T>(
      [&](auto width) {
        launch(LAMINA_KERNEL(batch_norm_gradient_sums_kernel<T, mask, width()>), grid, threads, 0, stream, f, x, y, dy,
               images, channels, members, partial);
      },
      x, dy, mask == NormMask::from_y ? y : View<const T>());
}

template <class T, NormMask mask>
void launch_gradients(Stream stream, const PointwiseFunction& function, View<const T> x, View<const T> y,
                      View<const T> dy, Images<const Slopes<T>> slopes, const NormGradients<T>& gradients) {
  const auto on_dy = [&](const View<T>& view) { return view.data == dy.data && view.pitch == dy.pitch; };
  View<T> dother = gradients.dother;
  if (mask == NormMask::none && !gradients.adds_dother && on_dy(dother)) dother.data = nullptr;  // it is dy
  if (gradients.dx.data == nullptr && dother.data == nullptr) return;
  if (mask != NormMask::from_y) y.data = nullptr;
  packing_of<T>(false, dy, x, y, gradients.dx, dother).launch_by(stream, [&](auto width, auto start) {
    start(LAMINA_KERNEL(batch_norm_gradient_kernel<T, mask, width()>), AnyFunction<Computed<T>>(function), x.plane(), x,
          y, dy, slopes, gradients.dx, gradients.adds_dx, dother, gradients.adds_dother);
  });
}

template <class T>
Slopes<T>* slopes_behind(void* workspace, int channels, std::int64_t count) {
  return reinterpret_cast<Slopes<T>*>(static_cast<char*>(workspace) + channel_sums_bytes(channels, count));
}

template <class T, NormMask mask>
void backward(Stream stream, const PointwiseFunction& function, View<const T> x, View<const T> y, View<const T> dy,
              const NormChannel<T>* channels, const Computed<T>* scale, const NormGradients<T>& gradients,
              void* workspace) {
  const std::int64_t count = x.n * x.plane();
  auto* const partial = static_cast<Sums*>(workspace);
  auto* const slopes = slopes_behind<T>(workspace, x.c, count);
  launch_sums<T, mask>(stream, function, x, y, dy, x.n, channels, 1, partial);
  launch(LAMINA_KERNEL(batch_norm_slopes_kernel<T>), static_cast<unsigned>(x.c), lanes, 0, stream, partial,
         slices_of(x.c, count), static_cast<double>(count), channels, scale, gradients.dscale, gradients.dshift,
         gradients.adds_dw, slopes);
  launch_gradients<T, mask>(stream, function, x, y, dy, {slopes, 0}, gradients);
}

}  // namespace

template <class T>
std::size_t batch_norm_backward_bytes(int channels, std::int64_t count) {
  return channel_sums_bytes(channels, count) + static_cast<std::size_t>(channels) * sizeof(Slopes<T>);
}

template <class T>
void batch_norm_backward(Stream stream, NormMask mask, const PointwiseFunction& function, View<const T> x,
                         View<const T> y, View<const T> dy, const NormChannel<T>* channels, const Computed<T>* scale,
                         const NormGradients<T>& gradients, void* workspace) {
  const auto with = [&](auto its) {
    backward<T, decltype(its)::value>(stream, function, x, y, dy, channels, scale, gradients, workspace);
  };
  switch (mask) {
    case NormMask::none: return with(std::integral_constant<NormMask, NormMask::none>());
    case NormMask::from_y: return with(std::integral_constant<NormMask, NormMask::from_y>());
    case NormMask::from_x: return with(std::integral_constant<NormMask, NormMask::from_x>());
    case NormMask::function: return with(std::integral_constant<NormMask, NormMask::function>());
  }
}

template <class T>
void group_norm_backward(Stream stream, View<const T> x, View<const T> dy, const GroupNumbers<T>& numbers,
                         const NormChannel<T>* saved, const NormGradients<T>& gradients, void* workspace) {
  const int members = x.c / numbers.groups, channels = x.n * x.c, slices = slices_of(channels, x.plane());
  auto* const partial = static_cast<Sums*>(workspace);
  auto* const slopes = slopes_behind<T>(workspace, channels, x.plane());
  launch_sums<T, NormMask::none>(stream, {}, x, {}, dy, 1, saved, members, partial);
  launch(LAMINA_KERNEL(group_norm_slopes_kernel<T>), static_cast<unsigned>(x.n * numbers.groups), lanes, 0, stream,
         partial, slices, static_cast<double>(members * x.plane()), saved, numbers.scale, numbers.groups, members,
         slopes);
  if (gradients.dscale != nullptr)
    put_channel_sums(stream, partial, x.n, x.c, slices, gradients.dshift, gradients.dscale, gradients.adds_dw);
  launch_gradients<T, NormMask::none>(stream, {}, x, {}, dy, {slopes, x.c}, gradients);
}

#define LAMINA_INSTANTIATE(T)                                                                                          \
  template std::size_t batch_norm_backward_bytes<T>(int, std::int64_t);                                                \
  template void batch_norm_backward(Stream, NormMask, const PointwiseFunction&, View<const T>, View<const T>,          \
                                    View<const T>, const NormChannel<T>*, const Computed<T>*, const NormGradients<T>&, \
                                    void*);                                                                            \
  template void group_norm_backward(Stream, View<const T>, View<const T>, const GroupNumbers<T>&,                      \
                                    const NormChannel<T>*, const NormGradients<T>&, void*);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
