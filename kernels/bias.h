#pragma once
// Bias and ReLU after a library's matrix product, and the gradient of every bias.

#include <cstddef>

#include "kernels/conv/conv_geometry.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// y[n,k,p,q] += bias[k], and with `relu` max(y, 0), in place; a null bias adds nothing. A NaN stays a NaN.
template <class T>
void add_bias(Stream, const T* bias, View<T> y, bool relu);

/// db[k] = sum over n,p,q of dy, or db += with `adds`; `partial` has bias_gradient_bytes bytes.
template <class T>
void bias_gradient(Stream, const Masked<T>& dy, T* db, bool adds, void* partial);

/// For channels of `count` values.
std::size_t bias_gradient_bytes(int channels, std::int64_t count);

}  // namespace lamina::LAMINA_CUDA_SPACE
