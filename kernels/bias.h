#pragma once
// What stands behind a product that a library made: y += bias, and the cut at 0.

#include "stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// y[n,k,p,q] += bias[k], and with `relu` max(y, 0), in place; a null bias is none. A NaN stays a NaN.
template <class T>
void add_bias(Stream, const T* bias, View<T> y, bool relu);

}  // namespace lamina::LAMINA_CUDA_SPACE
