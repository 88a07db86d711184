#pragma once
// Adds the sums of the ranges: the second kernel of a product whose sums are split.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// result[n,c,p,q] = bias[c] + the sum over ranges, in order, of partial[range,n,c,p,q].
/// out[n, c, p step_h + base_h, q step_w + base_w] becomes the result or, with `adds`, is increased by it. Then `relu`
/// clamps it at 0.
template <class T>
struct ConvRanges {
  const T* partial = nullptr;  ///< dense, in the order range, n, c, p, q
  int ranges = 1;
  int rows = 1, columns = 1;  ///< numbers of p and q
  View<T> out;
  int step_h = 1, base_h = 0, step_w = 1, base_w = 0;
  const T* bias = nullptr;  ///< may be null
  bool relu = false, adds = false;
};

template <class T>
void conv_add_ranges(Stream, const ConvRanges<T>&);

/// The same for a weight gradient of `groups` times `weights` elements. With one range it does nothing: the product has
/// written dw.
template <class T>
void conv_add_weight_ranges(Stream, const T* partial, int ranges, int groups, int weights, T* dw, bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
