#pragma once
// Convolution whose groups have one channel each, all passes, without a product: kernels of 3x3, 5x5 and 7x7, strides
// of 1 and 2 (the same both ways), no dilation. A group may have several filters.

#include "conv_geometry.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Whether there are kernels for this geometry, if a group has one channel.
bool has_conv_depthwise(const ConvGeometry&);

template <class T>
void conv_depthwise_forward(Stream, const ConvGeometry&, View<const T> x, const T* w, View<T> y, const ConvEnd<T>&);

/// dx, or dx += with `adds`.
template <class T>
void conv_depthwise_backward_data(Stream, const ConvGeometry&, const T* w, const Masked<T>& dy, View<T> dx, bool adds);

/// dw, or dw += with `adds`; dw is dy.c x kernel_h x kernel_w, dense. Takes conv_depthwise_weights_bytes of workspace.
template <class T>
void conv_depthwise_backward_weights(Stream, const ConvGeometry&, View<const T> x, const Masked<T>& dy, T* dw,
                                     bool adds, void* workspace);
/// `count`: images times pixels of a plane of dy.
std::size_t conv_depthwise_weights_bytes(const ConvGeometry&, int filters, std::int64_t count);

}  // namespace lamina::LAMINA_CUDA_SPACE
