#pragma once
// What a convolution on halves needs besides the library's calls. Filter and gradient of the filter stay in f32: the
// library gets a half form of the filter, and gives the gradient in halves, which is then added to that of f32.

#include <optional>

#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {

/// The spec of a convolution as the library gets it: the filter is of the values' type. In nhwc the channels of a first
/// layer are filled up to 8 with zeros: of a layer with fewer channels, whose data gradient nobody wants.
Spec as_given(const Conv&, Spec);

/// Copies of one unit on halves.
class HalfConv {
 public:
  HalfConv(const Conv&, const Spec&, Session&);

  std::size_t filter_bytes() const { return filter_bytes_; }
  std::size_t image_bytes() const { return whole_ ? image_bytes_ : 0; }  ///< of the copy of x, if it is filled up

  /// to = w. `w` is of f32.
  void write_filter(const Tensor& w, void* to) const;
  /// dw = from, or dw += from.
  void take_gradient(void* from, const Tensor& dw, bool adds) const;
  /// x, or the copy of it that is written to `room`.
  const void* image(const Args&, void* room) const;

 private:
  Tensor in_halves(Tensor filter, void* data) const;

  Session& session_;
  DType dtype_;
  std::int64_t filter_pitch_;
  std::size_t filter_bytes_, image_bytes_;
  std::optional<TensorDescriptor> x_, whole_, part_;  ///< if x is filled up: x, the copy, and the part of it that is x
};

}  // namespace lamina::cudnn
