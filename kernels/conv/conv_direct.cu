// Convolution by its definition: y[n,k,p,q] = bias[k] + sum over c,r,s of w[k,c,r,s] x[n,c,h,w], with h = p stride -
// pad + r dilation and w = q stride - pad + s dilation; dx and dw are sums of the same kind.
//
// One thread computes one result. It gathers all terms from global memory, in order, in double. There is no tile, no
// shared memory and no restriction on shapes. It is the most exact algorithm, and tests compare other algorithms with
// it. Per multiply-add: two loads.

#include "conv_direct.h"

#include "kernels/common/clamp_at_zero.h"
#include "kernels/common/elements.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
__global__ void conv_direct_forward_kernel(ConvGeometry g, View<const T> x, const T* w, View<T> y, ConvEnd<T> end) {
  const int channels = x.c / g.groups, filters = y.c / g.groups, taps = g.kernel_h * g.kernel_w;
  for_each_pixel(y, [&](int n, int k, int p, int q, std::int64_t i) {
    const T* filter = w + std::int64_t{k} * channels * taps;
    const int first_channel = k / filters * channels;
    double sum = end.bias == nullptr ? 0 : static_cast<double>(end.bias[k]);
    for (int c = 0; c < channels; ++c) {
      const T* plane = x.at(n, first_channel + c);
      for (int r = 0; r < g.kernel_h; ++r) {
        const int row = p * g.stride_h - g.pad_h + r * g.dilation_h;
        if (row < 0 || row >= x.h) continue;
        for (int s = 0; s < g.kernel_w; ++s) {
          const int column = q * g.stride_w - g.pad_w + s * g.dilation_w;
          if (column < 0 || column >= x.w) continue;
          sum += static_cast<double>(filter[(std::int64_t{c} * g.kernel_h + r) * g.kernel_w + s]) *
                 static_cast<double>(plane[std::int64_t{row} * x.w + column]);
        }
      }
    }
    T& to = y.at(n, 0)[i];
    if (end.adds) sum += static_cast<double>(to);
    to = static_cast<T>(end.relu ? clamp_at_zero(sum) : sum);
  });
}

template <class T>
__global__ void conv_direct_backward_data_kernel(ConvGeometry g, const T* weights, Masked<T> dy, View<T> dx,
                                                 bool adds) {
  const int channels = dx.c / g.groups, filters = dy.dy.c / g.groups, taps = g.kernel_h * g.kernel_w;
  for_each_pixel(dx, [&](int n, int c, int h, int w, std::int64_t i) {
    const int group = c / channels;
    double sum = 0;
    for (int k = group * filters; k < (group + 1) * filters; ++k) {
      const T* filter = weights + (std::int64_t{k} * channels + c % channels) * taps;
      for (int r = 0; r < g.kernel_h; ++r) {
        const int down = h + g.pad_h - r * g.dilation_h;
        if (down < 0 || down % g.stride_h != 0 || down / g.stride_h >= dy.dy.h) continue;
        for (int s = 0; s < g.kernel_w; ++s) {
          const int across = w + g.pad_w - s * g.dilation_w;
          if (across < 0 || across % g.stride_w != 0 || across / g.stride_w >= dy.dy.w) continue;
          const std::int64_t at = std::int64_t{down / g.stride_h} * dy.dy.w + across / g.stride_w;
          sum += static_cast<double>(filter[r * g.kernel_w + s]) * static_cast<double>(dy.at(n, k, at));
        }
      }
    }
    T& to = dx.at(n, 0)[i];
    to = static_cast<T>(adds ? sum + static_cast<double>(to) : sum);
  });
}

/// `dw` as one row of weights, so that elements are distributed among threads as in other kernels.
template <class T>
__global__ void conv_direct_backward_weights_kernel(ConvGeometry g, View<const T> x, Masked<T> dy, View<T> dw,
                                                    bool adds) {
  const int channels = x.c / g.groups, filters = dy.dy.c / g.groups, taps = g.kernel_h * g.kernel_w;
  for_each_element(dw, [&](int, std::int64_t i) {
    const int tap = static_cast<int>(i % taps), r = tap / g.kernel_w, s = tap % g.kernel_w;
    const int c = static_cast<int>(i / taps % channels), k = static_cast<int>(i / taps / channels);
    const int channel = k / filters * channels + c;
    double sum = 0;
    for (int n = 0; n < x.n; ++n) {
      const T* plane = x.at(n, channel);
      for (int p = 0; p < dy.dy.h; ++p) {
        const int row = p * g.stride_h - g.pad_h + r * g.dilation_h;
        if (row < 0 || row >= x.h) continue;
        for (int q = 0; q < dy.dy.w; ++q) {
          const int column = q * g.stride_w - g.pad_w + s * g.dilation_w;
          if (column < 0 || column >= x.w) continue;
          sum += static_cast<double>(dy.at(n, k, std::int64_t{p} * dy.dy.w + q)) *
                 static_cast<double>(plane[std::int64_t{row} * x.w + column]);
        }
      }
    }
    T& to = dw.data[i];
    to = static_cast<T>(adds ? sum + static_cast<double>(to) : sum);
  });
}

}  // namespace

template <class T>
void ConvDirect::forward(Stream stream, const ConvGeometry& g, View<const T> x, const T* w, View<T> y,
                         const ConvEnd<T>& end, void*) {
  launch(LAMINA_KERNEL(conv_direct_forward_kernel<T>), grid_of_elements(y), elements_per_block, 0, stream, g, x, w, y,
         end);
}

template <class T>
void ConvDirect::backward_data(Stream stream, const ConvGeometry& g, const T* w, const Masked<T>& dy, View<T> dx,
                               bool adds, void*) {
  launch(LAMINA_KERNEL(conv_direct_backward_data_kernel<T>), grid_of_elements(dx), elements_per_block, 0, stream, g, w,
         dy, dx, adds);
}

template <class T>
void ConvDirect::backward_weights(Stream stream, const ConvGeometry& g, View<const T> x, const Masked<T>& dy, T* dw,
                                  void*, bool adds) {
  View<T> weights{dw, 1, dy.dy.c, x.c / g.groups, g.kernel_h * g.kernel_w, 0};
  launch(LAMINA_KERNEL(conv_direct_backward_weights_kernel<T>), grid_of_elements(weights), elements_per_block, 0,
         stream, g, x, dy, weights, adds);
}

#define LAMINA_INSTANTIATE(T)                                                                                         \
  template void ConvDirect::forward(Stream, const ConvGeometry&, View<const T>, const T*, View<T>, const ConvEnd<T>&, \
                                    void*);                                                                           \
  template void ConvDirect::backward_data(Stream, const ConvGeometry&, const T*, const Masked<T>&, View<T>, bool,     \
                                          void*);                                                                     \
  template void ConvDirect::backward_weights(Stream, const ConvGeometry&, View<const T>, const Masked<T>&, T*, void*, \
                                             bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
