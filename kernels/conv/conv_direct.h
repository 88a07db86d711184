#pragma once
// Convolution by its definition, all passes: one thread for one result, sums in double.

#include "conv_geometry.h"

namespace lamina::LAMINA_CUDA_SPACE {

struct ConvDirect : ConvWithoutWorkspace {
  static constexpr const char* name = "direct";

  template <class T>
  static void forward(Stream, const ConvGeometry&, View<const T> x, const T* w, View<T> y, const ConvEnd<T>&,
                      void* workspace = nullptr);
  /// dx, or dx += with `adds`.
  template <class T>
  static void backward_data(Stream, const ConvGeometry&, const T* w, const Masked<T>& dy, View<T> dx, bool adds,
                            void* workspace = nullptr);
  /// dw, or dw += with `adds`; dw is dy.c x x.c / groups x kernel_h x kernel_w, dense.
  template <class T>
  static void backward_weights(Stream, const ConvGeometry&, View<const T> x, const Masked<T>& dy, T* dw,
                               void* workspace, bool adds);
};

}  // namespace lamina::LAMINA_CUDA_SPACE
