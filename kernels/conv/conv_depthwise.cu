// Convolution whose groups have one channel: y[n,k,p,q] = bias[k] + sum over r,s of w[k,r,s] x[n,c,h,w], where c is the
// channel of filter k, h = p stride - pad + r, w = q stride - pad + s; dx and dw are sums of the same products.
//
// Forward, and for dx with stride 1, a thread computes a strip: four results below one another. It walks down each
// column of the window, reads each number once and adds it, times weights, to the strip's results, which are in
// registers. Neighbouring threads have neighbouring columns and read the same rows through the L1 cache. dx with stride
// 2: a thread computes one result, from the taps that reach it. dw: a block takes a filter and a slice of the pixels of
// dy (channel_sums.h). A thread keeps one sum for each tap, the block adds them in double, and a second kernel adds the
// slices in order. The number of slices depends on the shape alone.
//
// Bytes: each tensor passes memory once. L1 reads per result with a 3x3 window: 4.5 forward with stride 1, 6.75 with
// stride 2. docs/algorithms/depthwise.md has the roofline.

#include "conv_depthwise.h"

#include "kernels/common/channel_sums.h"
#include "kernels/common/clamp_at_zero.h"
#include "kernels/common/elements.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int strip = 4;  // results of a thread, below one another

/// Numbers to read, as a plane of rows x columns.
struct Plane {
  int rows, columns;
};

/// sums[i] += sum over r,s of w[r,s] at(row + i Stride + r, column + s), or with the filter rotated by 180 degrees.
/// Numbers outside the plane are zeros.
template <int Extent, int Stride, bool Rotated, class T, class At>
__device__ void add_strip(T (&sums)[strip], const T* w, const Plane& plane, int row, int column, const At& at) {
  [[maybe_unused]] constexpr int at_once =
      Extent > 3 ? 1 : Extent;  // columns that are read at once: more would take most of the registers
#pragma unroll at_once
  for (int s = 0; s < Extent; ++s) {
    const int from = column + s;
    if (from < 0 || from >= plane.columns) continue;
    T weights[Extent];
#pragma unroll
    for (int r = 0; r < Extent; ++r) {
      const int tap = r * Extent + s;
      weights[r] = w[Rotated ? Extent * Extent - 1 - tap : tap];
    }
#pragma unroll
    for (int j = 0; j < (strip - 1) * Stride + Extent; ++j) {
      const int down = row + j;
      const T value = down >= 0 && down < plane.rows ? at(std::int64_t{down} * plane.columns + from) : T(0);
#pragma unroll
      for (int i = 0; i < strip; ++i) {
        const int r = j - i * Stride;
        if (r >= 0 && r < Extent) sums[i] += weights[r] * value;
      }
    }
  }
}

/// The view of a tensor that has strips in place of rows.
template <class T>
__host__ __device__ View<T> strips_of(View<T> view) {
  view.h = (view.h + strip - 1) / strip;
  return view;
}

template <class T, int Extent, int Stride>
__global__ void conv_depthwise_forward_kernel(ConvGeometry g, View<const T> x, const T* w, View<T> y, ConvEnd<T> end) {
  const int filters = y.c / g.groups;
  for_each_pixel(strips_of(y), [&](int n, int k, int row, int q, std::int64_t) {
    const T bias = end.bias == nullptr ? T(0) : end.bias[k];
    T sums[strip] = {bias, bias, bias, bias};
    const T* const plane = x.at(n, k / filters);
    add_strip<Extent, Stride, false>(sums, w + std::int64_t{k} * Extent * Extent, {x.h, x.w},
                                     row * strip * Stride - g.pad_h, q * Stride - g.pad_w,
                                     [&](std::int64_t i) { return plane[i]; });
    T* const out = y.at(n, k) + q;
#pragma unroll
    for (int i = 0; i < strip; ++i) {
      const int p = row * strip + i;
      if (p >= y.h) break;
      T& to = out[std::int64_t{p} * y.w];
      const T sum = end.adds ? sums[i] + to : sums[i];
      to = end.relu ? clamp_at_zero(sum) : sum;
    }
  });
}

template <class T, int Extent>
__global__ void conv_depthwise_data_strips_kernel(ConvGeometry g, const T* w, Masked<T> dy, View<T> dx, bool adds) {
  const int filters = dy.dy.c / g.groups;
  for_each_pixel(strips_of(dx), [&](int n, int c, int row, int column, std::int64_t) {
    T sums[strip] = {};
    for (int k = c * filters; k < (c + 1) * filters; ++k)
      add_strip<Extent, 1, true>(sums, w + std::int64_t{k} * Extent * Extent, {dy.dy.h, dy.dy.w},
                                 row * strip + g.pad_h - (Extent - 1), column + g.pad_w - (Extent - 1),
                                 [&](std::int64_t i) { return dy.at(n, k, i); });
    T* const out = dx.at(n, c) + column;
#pragma unroll
    for (int i = 0; i < strip; ++i) {
      const int h = row * strip + i;
      if (h >= dx.h) break;
      put(out[std::int64_t{h} * dx.w], sums[i], adds);
    }
  });
}

template <class T, int Extent, int Stride>
__global__ void conv_depthwise_data_kernel(ConvGeometry g, const T* w, Masked<T> dy, View<T> dx, bool adds) {
  const int filters = dy.dy.c / g.groups;
  for_each_pixel(dx, [&](int n, int c, int h, int column, std::int64_t at) {
    T sum = 0;
    for (int k = c * filters; k < (c + 1) * filters; ++k) {
      const T* const filter = w + std::int64_t{k} * Extent * Extent;
#pragma unroll
      for (int r = 0; r < Extent; ++r) {
        const int down = h + g.pad_h - r;
        if (down < 0 || down % Stride != 0 || down / Stride >= dy.dy.h) continue;
#pragma unroll
        for (int s = 0; s < Extent; ++s) {
          const int across = column + g.pad_w - s;
          if (across < 0 || across % Stride != 0 || across / Stride >= dy.dy.w) continue;
          sum += filter[r * Extent + s] * dy.at(n, k, std::int64_t{down / Stride} * dy.dy.w + across / Stride);
        }
      }
    }
    put(dx.at(n, 0)[at], sum, adds);
  });
}

template <class T, int Extent, int Stride>
__global__ void conv_depthwise_weights_kernel(ConvGeometry g, View<const T> x, Masked<T> dy, T* dw, bool adds,
                                              double* partial) {
  constexpr int taps = Extent * Extent;
  const int k = static_cast<int>(blockIdx.x), c = k / (dy.dy.c / g.groups);
  const auto width = static_cast<unsigned>(dy.dy.w);
  T sums[taps] = {};
  for_each_pack_of_slice<1>(dy.dy.n, dy.dy.plane(), [&](int n, std::int64_t i) {
    const T gradient = dy.at(n, k, i);
    const T* const plane = x.at(n, c);
    const unsigned p = static_cast<unsigned>(i) / width;
    const int row = static_cast<int>(p) * Stride - g.pad_h;
    const int column = static_cast<int>(static_cast<unsigned>(i) - p * width) * Stride - g.pad_w;
#pragma unroll
    for (int r = 0; r < Extent; ++r) {
      if (row + r < 0 || row + r >= x.h) continue;
#pragma unroll
      for (int s = 0; s < Extent; ++s)
        if (column + s >= 0 && column + s < x.w)
          sums[r * Extent + s] += gradient * plane[std::int64_t{row + r} * x.w + column + s];
    }
  });
#pragma unroll
  for (int tap = 0; tap < taps; ++tap) {
    const double sum = reduce_block<sum_threads>(static_cast<double>(sums[tap]), Plus());
    if (threadIdx.x != 0) continue;
    const std::int64_t weight = std::int64_t{k} * taps + tap;
    if (gridDim.y == 1)
      put(dw[weight], static_cast<T>(sum), adds);
    else
      partial[weight * gridDim.y + blockIdx.y] = sum;
  }
}

/// Adds the slices of dw, one thread for each weight.
template <class T>
__global__ void conv_depthwise_slices_kernel(const double* partial, int slices, View<T> dw, bool adds) {
  for_each_element(dw, [&](int, std::int64_t i) {
    double sum = 0;
    for (int slice = 0; slice < slices; ++slice) sum += partial[i * slices + slice];
    put(dw.data[i], static_cast<T>(sum), adds);
  });
}

/// Calls run(extent, stride) with the kernel's extent and stride as types.
template <class Run>
void with_window(const ConvGeometry& g, const Run& run) {
  const auto with_stride = [&](auto extent) {
    if (g.stride_h == 1)
      run(extent, std::integral_constant<int, 1>());
    else
      run(extent, std::integral_constant<int, 2>());
  };
  switch (g.kernel_h) {
    case 3: return with_stride(std::integral_constant<int, 3>());
    case 5: return with_stride(std::integral_constant<int, 5>());
    default: return with_stride(std::integral_constant<int, 7>());
  }
}

}  // namespace

bool has_conv_depthwise(const ConvGeometry& g) {
  const bool extent = g.kernel_h == g.kernel_w && (g.kernel_h == 3 || g.kernel_h == 5 || g.kernel_h == 7);
  return extent && g.stride_h == g.stride_w && g.stride_h <= 2 && g.dilation_h == 1 && g.dilation_w == 1;
}

template <class T>
void ConvDepthwise::forward(Stream stream, const ConvGeometry& g, View<const T> x, const T* w, View<T> y,
                            const ConvEnd<T>& end, void*) {
  with_window(g, [&](auto extent, auto stride) {
    launch(LAMINA_KERNEL(conv_depthwise_forward_kernel<T, decltype(extent)::value, decltype(stride)::value>),
           grid_of_elements(strips_of(y)), elements_per_block, 0, stream, g, x, w, y, end);
  });
}

template <class T>
void ConvDepthwise::backward_data(Stream stream, const ConvGeometry& g, const T* w, const Masked<T>& dy, View<T> dx,
                                  bool adds, void*) {
  with_window(g, [&](auto extent, auto stride) {
    constexpr int window = decltype(extent)::value, step = decltype(stride)::value;
    if constexpr (step == 1)
      launch(LAMINA_KERNEL(conv_depthwise_data_strips_kernel<T, window>), grid_of_elements(strips_of(dx)),
             elements_per_block, 0, stream, g, w, dy, dx, adds);
    else
      launch(LAMINA_KERNEL(conv_depthwise_data_kernel<T, window, step>), grid_of_elements(dx), elements_per_block, 0,
             stream, g, w, dy, dx, adds);
  });
}

template <class T>
std::size_t ConvDepthwise::backward_weights_bytes(const ConvGeometry& g, const View<const T>&,
                                                  const View<const T>& dy) {
  const int slices = slices_of(dy.c, dy.n * dy.plane());
  if (slices == 1) return 0;
  return sizeof(double) * static_cast<std::size_t>(dy.c) * static_cast<std::size_t>(slices * g.kernel_h * g.kernel_w);
}

template <class T>
void ConvDepthwise::backward_weights(Stream stream, const ConvGeometry& g, View<const T> x, const Masked<T>& dy, T* dw,
                                     void* workspace, bool adds) {
  const dim3 grid = grid_of_slices(dy.dy.c, dy.dy.n * dy.dy.plane());
  auto* const partial = static_cast<double*>(workspace);
  with_window(g, [&](auto extent, auto stride) {
    launch(LAMINA_KERNEL(conv_depthwise_weights_kernel<T, decltype(extent)::value, decltype(stride)::value>), grid,
           sum_threads, 0, stream, g, x, dy, dw, adds, partial);
  });
  if (grid.y == 1) return;
  const View<T> weights{dw, 1, dy.dy.c, g.kernel_h, g.kernel_w, 0};
  launch(LAMINA_KERNEL(conv_depthwise_slices_kernel<T>), grid_of_elements(weights), elements_per_block, 0, stream,
         static_cast<const double*>(partial), static_cast<int>(grid.y), weights, adds);
}

#define LAMINA_INSTANTIATE(T)                                                                                        \
  template void ConvDepthwise::forward(Stream, const ConvGeometry&, View<const T>, const T*, View<T>,                \
                                       const ConvEnd<T>&, void*);                                                    \
  template void ConvDepthwise::backward_data(Stream, const ConvGeometry&, const T*, const Masked<T>&, View<T>, bool, \
                                             void*);                                                                 \
  template void ConvDepthwise::backward_weights(Stream, const ConvGeometry&, View<const T>, const Masked<T>&, T*,    \
                                                void*, bool);                                                        \
  template std::size_t ConvDepthwise::backward_weights_bytes(const ConvGeometry&, const View<const T>&,              \
                                                             const View<const T>&);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
