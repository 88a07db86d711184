#pragma once
// Convolution with 3x3 filters, stride 1 and dilation 1, and its data gradient, by Winograd's F(4x4, 3x3).

#include "stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The filters of one convolution: per group, `outputs` filters of `inputs` channels, 3x3. `transposed`: for the data
/// gradient, which is a convolution of dy whose filters are those of w flipped, with its two channel axes exchanged.
struct WinogradFilters {
  int groups = 1, outputs = 0, inputs = 0;
  bool transposed = false;
};

/// Elements of the transformed filters.
template <class T>
std::int64_t winograd_4x4_filter_count(const WinogradFilters&);

/// Writes the transformed filters to `to`, aligned to 16 bytes, for the launcher below. w is as in memory: of a group,
/// outputs x inputs x 3 x 3, or inputs x outputs x 3 x 3 where transposed.
template <class T>
void winograd_4x4_filters(Stream, const WinogradFilters&, const T* w, T* to);

/// One convolution.
template <class T>
struct WinogradConv {
  WinogradFilters filters{};
  const T* transformed = nullptr;  ///< by winograd_4x4_filters
  View<const T> x;
  View<const T> mask;  ///< x counts only where this is above 0; null: everywhere
  View<T> y;
  const T* bias = nullptr;   ///< null: none
  int pad_h = 0, pad_w = 0;  ///< may be negative: so many rows and columns of x are left out
  bool relu = false;         ///< y is cut off at 0
  bool adds = false;         ///< y += instead of y =
};

template <class T>
void winograd_4x4(Stream, const WinogradConv<T>&);

/// Cycles of a large device, as the model of docs/algorithms/winograd_4x4.md predicts for f32: of the convolution whose
/// y is images x h x w, and of the filters' transform before it.
std::int64_t winograd_4x4_cycles(const WinogradFilters&, int images, int h, int w);
std::int64_t winograd_4x4_filter_cycles(const WinogradFilters&);

}  // namespace lamina::LAMINA_CUDA_SPACE
