#pragma once
// The buffers of a plan, and the tensors in them.

#include <vector>

#include "lamina/device.h"
#include "layout.h"

namespace lamina::planner {

/// Owns the memory that a layout asks for. Parameter gradients start as zeros, inputs and the arena as NaN, so that a
/// read of what was never written shows.
class Memory {
 public:
  Memory(Device&, const PlanLayout&, const std::vector<Node>& nodes, const Options&);

  void* address(const Location&) const;
  Tensor value(int i) const;       ///< as forward leaves it
  Tensor kept_value(int i) const;  ///< as backward finds it: made again if it was dropped
  Tensor gradient(int i) const;    ///< null where nobody wants it
  Tensor parameter(int i, std::size_t k) const;
  Tensor parameter_gradient(int i, std::size_t k) const;  ///< null in inference
  Tensor state(int i, std::size_t k) const;

 private:
  const Node& node(int i) const { return (*nodes_)[static_cast<std::size_t>(i)]; }
  Tensor dense(const Location&, const Shape&, DType) const;
  Tensor placed(const std::vector<Location>&, const Places&, int i) const;

  const PlanLayout* layout_;
  const std::vector<Node>* nodes_;
  DType dtype_;
  lamina::Layout order_;
  Buffer parameters_, parameter_gradients_, state_, inputs_, arena_, prepared_;
};

}  // namespace lamina::planner
