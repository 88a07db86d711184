#pragma once
// Copies for a convolution on halves. The filter and its gradient stay in f32. The library gets a half form of the
// filter and gives the gradient in halves; the gradient is then converted to f32.

#include <optional>

#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {

/// The spec of a convolution as the library gets it: the filter has the values' type. In nhwc the channels of a first
/// layer are padded to 8 with zeros. A first layer has fewer channels, and its data gradient is not wanted. Engines of
/// graphs get the channels as they are.
Spec as_given(const Conv&, Spec, const Session&);

/// Copies of one unit on halves.
class HalfConv : Calls {
 public:
  HalfConv(const Conv&, const Spec&, Session&);

  std::size_t filter_bytes() const { return filter_bytes_; }
  std::size_t image_bytes() const { return whole_ ? image_bytes_ : 0; }  ///< bytes of the copy of x, if it is padded

  /// to = w. `w` is of f32.
  void write_filter(const Tensor& w, void* to) const;
  /// dw = from, or dw += from.
  void take_gradient(void* from, const Tensor& dw, bool adds) const;
  /// x, or its padded copy, written to `room`.
  const void* image(const Args&, void* room) const;

 private:
  Tensor in_halves(Tensor filter, void* data) const;

  std::int64_t filter_pitch_;
  std::size_t filter_bytes_, image_bytes_;
  std::optional<TensorDescriptor> x_, whole_, part_;  ///< if x is padded: x, the copy, and the copy's part that is x
};

}  // namespace lamina::cudnn
