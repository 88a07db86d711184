#pragma once
// Convolution whose groups have one channel each, all passes, without a product: kernels of 3x3, 5x5 and 7x7, strides
// of 1 and 2 (the same both ways), no dilation. A group may have several filters.

#include "conv_geometry.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Whether there are kernels for this geometry, if a group has one channel.
bool has_conv_depthwise(const ConvGeometry&);

struct ConvDepthwise : ConvWithoutWorkspace {
  static constexpr const char* name = "depthwise";

  template <class T>
  static void forward(Stream, const ConvGeometry&, View<const T> x, const T* w, View<T> y, const ConvEnd<T>&,
                      void* workspace = nullptr);
  /// dx, or dx += with `adds`.
  template <class T>
  static void backward_data(Stream, const ConvGeometry&, const T* w, const Masked<T>& dy, View<T> dx, bool adds,
                            void* workspace = nullptr);
  /// dw, or dw += with `adds`; dw is dy.c x kernel_h x kernel_w, dense. Takes backward_weights_bytes of workspace.
  template <class T>
  static void backward_weights(Stream, const ConvGeometry&, View<const T> x, const Masked<T>& dy, T* dw,
                               void* workspace, bool adds);
  template <class T>
  static std::size_t backward_weights_bytes(const ConvGeometry&, const View<const T>& x, const View<const T>& dy);
};

}  // namespace lamina::LAMINA_CUDA_SPACE
