#pragma once
// Bias and ReLU after a library's matrix product, and the gradient of the bias.

#include <cstddef>

#include "kernels/conv/conv_geometry.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// y[n,k,p,q] += bias[k], and with `relu` max(y, 0), in place. A null bias adds nothing. A NaN stays a NaN. If y holds
/// halves, the bias and its gradient below are float.
template <class T>
void add_bias(Stream, const Computed<T>* bias, View<T> y, bool relu);

/// db[k] = sum over n,p,q of dy, or db += with `adds`. `partial` has bias_gradient_bytes bytes.
template <class T>
void bias_gradient(Stream, const Masked<T>& dy, Computed<T>* db, bool adds, void* partial);

/// Bytes of `partial` for channels of `count` values.
std::size_t bias_gradient_bytes(int channels, std::int64_t count);

// The functions above for halves in images of one pixel (nhwc), where neighbouring channels are read together. The bias
// is not null.
template <class T>
void add_bias_to_rows(Stream, const float* bias, View<T> y, bool relu);
template <class T>
void bias_gradient_of_rows(Stream, View<const T> dy, float* db, bool adds, void* partial);

std::size_t bias_gradient_of_rows_bytes(int channels, std::int64_t rows);

}  // namespace lamina::LAMINA_CUDA_SPACE
