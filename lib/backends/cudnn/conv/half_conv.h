#pragma once
// Copies for a convolution on halves (f16, bf16). The plan has the filter and its gradient in f32. The library reads a
// copy of the filter in halves. It writes the gradient in halves, which is then converted to f32.

#include <memory>

#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {

/// The spec of a convolution as the library gets it. On halves the filter has the values' type, and in nhwc a first
/// layer has 8 channels, padded with zeros; engines of graphs get the channels as they are. A first layer has fewer
/// than 8 channels and one group, and its data gradient is not wanted.
Spec as_given(const Conv&, Spec, const Session&);

/// Copies of one unit on halves.
class HalfConv : Calls {
 public:
  HalfConv(const Conv&, const Spec&, Session&);

  std::size_t filter_bytes() const { return filter_bytes_; }
  std::size_t image_bytes() const { return whole_ ? image_bytes_ : 0; }  ///< bytes of the padded copy of x; 0: none

  /// to = w. `w` is of f32.
  void write_filter(const Tensor& w, void* to) const;
  /// dw = from, or dw += from.
  void take_gradient(void* from, const Tensor& dw, bool adds) const;
  /// Returns x or, if x is padded, writes the padded copy to `room` and returns this copy.
  const void* image(const Args&, void* room) const;

 private:
  Tensor in_halves(Tensor filter, void* data) const;

  std::int64_t filter_pitch_;
  std::size_t filter_bytes_, image_bytes_;
  std::unique_ptr<TensorDescriptor> x_, whole_, part_;  ///< x, its padded copy, x within the copy; empty: not padded
};

}  // namespace lamina::cudnn
