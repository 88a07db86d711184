#pragma once
// The buffers of a plan, and the tensors in them.

#include "../decisions/layout.h"
#include "lamina/device.h"

namespace lamina::planner {

/// Owns the memory that a layout asks for. Parameter gradients start as zeros, inputs and the arena as NaN, so that a
/// read of what was never written shows.
class Memory {
 public:
  Memory(Device&, const PlanLayout&, const Nodes&, const Options&);

  void* address(const Location&) const;
  Tensor value(NodeId) const;       ///< as forward leaves it
  Tensor kept_value(NodeId) const;  ///< as backward finds it: made again if it was dropped
  Tensor gradient(NodeId) const;    ///< null where nobody wants it
  Tensor parameter(NodeId, std::size_t k) const;
  Tensor parameter_gradient(NodeId, std::size_t k) const;  ///< null in inference
  Tensor state(NodeId, std::size_t k) const;

 private:
  Tensor dense(const Location&, const Shape&, DType) const;
  Tensor placed(const EachNode<Location>&, const Places&, NodeId) const;

  const PlanLayout* layout_;
  Nodes nodes_;
  DType dtype_;
  lamina::Layout order_;
  Buffer parameters_, parameter_gradients_, state_, inputs_, arena_, prepared_;
};

}  // namespace lamina::planner
