#pragma once
// The ops that follow the first op of a unit, as calls on its y: a bias, an Add, a ReLU, and the ReLU's mask of dy.

#include <optional>

#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {

/// The bias of a convolution or fully connected op, one number per channel, and its gradient. On halves the bias is of
/// f32, and our kernels add it and compute its gradient.
class Bias : Calls {
 public:
  /// `masked`: the gradient is computed from the masked dy, which has the pitch of y.
  Bias(const Spec&, Session&, bool masked = false);
  TensorObject* object() const { return bias_.get(); }
  /// y += bias; on halves with `relu` y = max(y + bias, 0).
  void add(const void* bias, const Tensor& y, bool relu = false) const;
  void gradient(const Args&, const Tensor& dy) const;             ///< dw[1], if it is wanted
  std::size_t gradient_bytes() const { return gradient_bytes_; }  ///< workspace of gradient()

 private:
  bool adds_;
  std::size_t gradient_bytes_;
  TensorDescriptor y_, dy_, bias_;
};

/// The masked dy: dy where y > 0, stored in the unit's scratch with y's pitch.
class ReluMask : Calls {
 public:
  ReluMask(const Spec&, Session&);
  void run(const Args&) const;

 private:
  ActivationDescriptor relu_;
  TensorDescriptor y_, dy_;
  bool copies_;
};

/// The Add and the ReLU, if any, that follow a batch norm or a sum.
class Tail : Calls {
 public:
  Tail(const Spec&, Session&);
  void forward(const Args&) const;  ///< y += x[1], y = max(y, 0)
  /// Masks dy, if there is a ReLU, and computes the gradient of the Add's operand.
  void backward(const Args&) const;
  void addend_gradient(const Args&) const;
  /// Whether the masked dy may be written as the gradient of the Add's operand.
  bool stores_mask_in_dx(const Args& args) const { return wanted(args, 1) && !adds_; }
  /// The dy that the gradients of the unit's first op are computed from.
  const void* dy(const Args& args) const { return mask_ ? args.scratch : args.dy.data; }
  /// Sets the flags and the scratch bytes that the tail needs.
  void require(Lowered&) const;

 private:
  bool adds_;
  std::size_t scratch_bytes_ = 0;
  TensorDescriptor y_;
  std::optional<ActivationDescriptor> relu_;
  std::optional<TensorDescriptor> addend_, addend_gradient_;
  std::optional<ReluMask> mask_;
};

}  // namespace lamina::cudnn
