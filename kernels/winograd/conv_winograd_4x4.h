#pragma once
// Convolution with 3x3 filters, stride 1 and dilation 1, and its gradients, by Winograd's F(4x4, 3x3).

#include "kernels/conv/conv_fold.h"
#include "kernels/conv/conv_geometry.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The filters of one convolution: per group, `outputs` filters of `inputs` channels, 3x3. `transposed` is for the data
/// gradient, which is a convolution of dy with the flipped filters of w, whose two channel axes are exchanged.
struct WinogradFilters {
  int groups = 1, outputs = 0, inputs = 0;
  bool transposed = false;
};

/// Number of elements of the transformed filters.
template <class T>
std::int64_t winograd_4x4_filter_count(const WinogradFilters&);

/// Writes the transformed filters to `to`, aligned to 16 bytes, for the launcher below. w in memory: per group,
/// outputs x inputs x 3 x 3, or inputs x outputs x 3 x 3 if transposed. `norm` is folded into the filters if it has a
/// scale and they are not transposed. The bias then comes from conv_fold().
template <class T>
void winograd_4x4_filters(Stream, const WinogradFilters&, const T* w, T* to, const FoldedNorm<T>& norm = {});

/// The operands and options of one convolution.
template <class T>
struct WinogradConv {
  WinogradFilters filters{};
  const T* transformed = nullptr;  ///< written by winograd_4x4_filters
  View<const T> x;
  View<const T> mask;  ///< x counts only where this is above 0; null: everywhere
  View<T> y;
  const T* bias = nullptr;   ///< null: none
  int pad_h = 0, pad_w = 0;  ///< padding; if negative, rows and columns of x to skip
  bool adds = false;         ///< whether to add (+=)
  bool relu = false;         ///< whether y is then clamped at 0
};

template <class T>
void winograd_4x4(Stream, const WinogradConv<T>&);

/// Cycles on a large device in f32, by the model of docs/algorithms/winograd_4x4.md: for the convolution whose y is
/// images x h x w, and for the filters' transform before it.
std::int64_t winograd_4x4_cycles(const WinogradFilters&, int images, int h, int w);
std::int64_t winograd_4x4_filter_cycles(const WinogradFilters&);

/// The operands and options of one weight gradient. dw is dy.c x x.c / groups x 3 x 3, dense.
template <class T>
struct WinogradWeights {
  int groups = 1;
  View<const T> x;
  Masked<T> dy;
  int pad_h = 0, pad_w = 0;
  T* dw = nullptr;
  bool adds = false;  ///< whether to add (+=)
};

/// The number of ranges of the sum over tiles, which different blocks compute, and the cycles in f32 that the model of
/// a large device predicts (docs/algorithms/winograd_4x4.md). Both depend on the shapes alone; data is not read.
struct WinogradRanges {
  int count;
  std::int64_t cycles;
};
template <class T>
WinogradRanges winograd_4x4_weights_ranges(const WinogradWeights<T>&);

/// Bytes of `partial` for the launcher below; 0 for one range. `ranges` of 0 means the rule above.
template <class T>
std::size_t winograd_4x4_weights_bytes(const WinogradWeights<T>&, int ranges = 0);

/// The sums of the ranges are added in order.
template <class T>
void winograd_4x4_weights(Stream, const WinogradWeights<T>&, T* partial, int ranges = 0);

}  // namespace lamina::LAMINA_CUDA_SPACE
