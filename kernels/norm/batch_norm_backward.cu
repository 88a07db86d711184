// Batch normalisation, backward. With x-hat = (x - mean) / deviation and dz the gradient of the normalised value, which
// is dy, or dy where y > 0 after a ReLU:
//   dshift[c] = sum dz      dscale[c] = sum dz x-hat      dother = dz
//   dx = scale[c] / deviation (dz - dshift[c] / count - x-hat dscale[c] / count)
//
// Three launches, as in forward: a block for a slice of a channel adds up dz and dz (x - mean) in double; a warp for a
// channel computes dscale, dshift and the coefficients of dx; a thread for a pack of 16 bytes writes dx and dother.
// Per element: two reads of x and of dy (and of y, if it gives the mask), one write of each gradient.

#include <cmath>

#include "batch_norm.h"
#include "kernels/common/channel_sums.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// dx = factor dz + (x - centre) slope + offset.
template <class T>
struct Slopes {
  Computed<T> centre, factor, slope, offset, forward_factor, forward_shift;
};

template <NormMask mask, class T>
__device__ T masked(T dy, T x, T y, T centre, T factor, T shift) {
  if (mask == NormMask::from_y) return y > T(0) ? dy : T(0);
  if (mask == NormMask::from_x) return std::fma(x - centre, factor, shift) > T(0) ? dy : T(0);
  return dy;
}

template <class T, NormMask mask, int width>
__global__ void batch_norm_gradient_sums_kernel(View<const T> x, View<const T> y, View<const T> dy,
                                                const NormChannel<T>* channels, Sums* partial) {
  const int c = static_cast<int>(blockIdx.x);
  const NormChannel<T> channel = channels[c];
  Sums sums;
  for_each_pack_of_slice<width>(x.n, x.plane(), [&](int n, std::int64_t i) {
    const Loaded<T, width> values = load_pack<width>(x.at(n, c) + i), gradients = load_pack<width>(dy.at(n, c) + i);
    const Loaded<T, width> results = mask == NormMask::from_y ? load_pack<width>(y.at(n, c) + i) : gradients;
    for (int k = 0; k < width; ++k) {
      const auto d = static_cast<double>(
          masked<mask>(gradients.v[k], values.v[k], results.v[k], channel.centre, channel.factor, channel.shift));
      sums.first += d;
      sums.second += d * (static_cast<double>(values.v[k]) - channel.mean);
    }
  });
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
  const double shift_sum = sums.first, scale_sum = sums.second * channel.inverse_deviation;
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

template <class T, NormMask mask, int width>
__global__ void batch_norm_gradient_kernel(Extent extent, std::int64_t plane, Images<const T> x, Images<const T> y,
                                           Images<const T> dy, const Slopes<T>* slopes, Images<T> dx, bool adds_dx,
                                           Images<T> dother, bool adds_dother) {
  for_each_pack<width>(extent, [&](int from_last, std::int64_t i) {
    const int n = extent.images - 1 - from_last;  // the sums have just read it; it may still be in the L2 cache
    const Loaded<T, width> values = load_pack<width>(x.at(n) + i);
    Loaded<T, width> dz = load_pack<width>(dy.at(n) + i), d;
    const Loaded<T, width> results = mask == NormMask::from_y ? load_pack<width>(y.at(n) + i) : dz;
    ChannelWalk<Slopes<T>> channel(slopes, plane, i);
    for (int k = 0; k < width; ++k) {
      const Slopes<T> of = *channel;
      dz.v[k] = masked<mask>(dz.v[k], values.v[k], results.v[k], of.centre, of.forward_factor, of.forward_shift);
      d.v[k] = std::fma(of.factor, dz.v[k], std::fma(values.v[k] - of.centre, of.slope, of.offset));
      if (k + 1 < width) channel.step();
    }
    if (dother.data != nullptr) put_pack(dother.at(n) + i, dz, adds_dother);
    if (dx.data != nullptr) put_pack(dx.at(n) + i, d, adds_dx);
  });
}

template <class T, NormMask mask>
void backward(Stream stream, View<const T> x, View<const T> y, View<const T> dy, const NormChannel<T>* channels,
              const Computed<T>* scale, const NormGradients<T>& gradients, void* workspace) {
  const std::int64_t count = x.n * x.plane();
  auto* const partial = static_cast<Sums*>(workspace);
  auto* const slopes = reinterpret_cast<Slopes<T>*>(static_cast<char*>(workspace) + channel_sums_bytes(x.c, count));
  const dim3 grid = grid_of_slices(x.c, count);
  const bool packs =
      packs_of_planes(x) > 1 && packs_of_planes(dy) > 1 && (mask != NormMask::from_y || packs_of_planes(y) > 1);
  if (packs) {
    launch(LAMINA_KERNEL(batch_norm_gradient_sums_kernel<T, mask, widest<T>>), grid, sum_threads, 0, stream, x, y, dy,
           channels, partial);
  } else {
    launch(LAMINA_KERNEL(batch_norm_gradient_sums_kernel<T, mask, 1>), grid, sum_threads, 0, stream, x, y, dy, channels,
           partial);
  }
  launch(LAMINA_KERNEL(batch_norm_slopes_kernel<T>), static_cast<unsigned>(x.c), lanes, 0, stream, partial,
         slices_of(x.c, count), static_cast<double>(count), channels, scale, gradients.dscale, gradients.dshift,
         gradients.adds_dw, slopes);

  const auto on_dy = [&](const View<T>& view) { return view.data == dy.data && view.pitch == dy.pitch; };
  View<T> dother = gradients.dother;
  if (mask == NormMask::none && !gradients.adds_dother && on_dy(dother)) dother.data = nullptr;  // dy is there already
  if (gradients.dx.data == nullptr && dother.data == nullptr) return;
  if (mask != NormMask::from_y) y.data = nullptr;
  with_packs<T>(
      false,
      [&](auto w, Extent extent) {
        constexpr int width = decltype(w)::value;
        launch(LAMINA_KERNEL(batch_norm_gradient_kernel<T, mask, width>), grid_of_packs(extent, width), pack_threads, 0,
               stream, extent, x.plane(), x, y, dy, slopes, gradients.dx, gradients.adds_dx, dother,
               gradients.adds_dother);
      },
      dy, x, y, gradients.dx, dother);
}

}  // namespace

template <class T>
std::size_t batch_norm_backward_bytes(int channels, std::int64_t count) {
  return channel_sums_bytes(channels, count) + static_cast<std::size_t>(channels) * sizeof(Slopes<T>);
}

template <class T>
void batch_norm_backward(Stream stream, NormMask mask, View<const T> x, View<const T> y, View<const T> dy,
                         const NormChannel<T>* channels, const Computed<T>* scale, const NormGradients<T>& gradients,
                         void* workspace) {
  switch (mask) {
    case NormMask::none: return backward<T, NormMask::none>(stream, x, y, dy, channels, scale, gradients, workspace);
    case NormMask::from_y:
      return backward<T, NormMask::from_y>(stream, x, y, dy, channels, scale, gradients, workspace);
    case NormMask::from_x:
      return backward<T, NormMask::from_x>(stream, x, y, dy, channels, scale, gradients, workspace);
  }
}

#define LAMINA_INSTANTIATE(T)                                                                      \
  template std::size_t batch_norm_backward_bytes<T>(int, std::int64_t);                            \
  template void batch_norm_backward(Stream, NormMask, View<const T>, View<const T>, View<const T>, \
                                    const NormChannel<T>*, const Computed<T>*, const NormGradients<T>&, void*);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
