#pragma once
// The buffers of a plan, and the tensors in them.

#include <memory>
#include <vector>

#include "lib/core/plan/decisions/layout.h"

#include "lamina/device.h"

namespace lamina::planner {

/// Owns the memory of a layout. Parameter gradients and the optimiser's state start as zeros, inputs and the arena as
/// NaN, which shows where an element is read that was never written. Parameters and state may belong to another Memory;
/// they then live until both are destroyed.
class Memory {
 public:
  Memory(Device&, const PlanLayout&, const Nodes&, const Options&, const Memory* share);

  void* address(const Location&) const;
  Tensor value(NodeId) const;       ///< value after forward
  Tensor kept_value(NodeId) const;  ///< value as backward reads it: recomputed if it was dropped
  Tensor gradient(NodeId) const;    ///< null if it is not wanted
  Tensor parameter(NodeId, std::size_t k) const;
  Tensor parameter_gradient(NodeId, std::size_t k) const;  ///< null in inference
  /// State k of the node. The numbers after its states are its fixed parameters.
  Tensor state(NodeId, std::size_t k) const;
  Tensor optimiser_state(NodeId, std::size_t k, std::size_t which) const;  ///< state of parameter k

  UpdateTensors all_parameters() const;  ///< all parameters as one row

  /// The rows that an update is applied to. All parameters are one row. With lazy updates of tables there are several
  /// rows: the tables, and the parameters between them.
  std::vector<UpdateTensors> update_rows(TableUpdates) const;

 private:
  struct Lasting {
    Buffer parameters, state;
  };
  Tensor dense(const Location&, const Shape&, DType) const;
  Tensor placed(const EachNode<Location>&, const Places&, NodeId) const;

  const PlanLayout* layout_;
  Nodes nodes_;
  DType parameter_dtype_;
  lamina::Layout order_;
  std::shared_ptr<const Lasting> lasting_;
  EachNode<std::vector<Tensor>> shared_parameter_, shared_state_;  // the tensors of another Memory, if it shares them
  Buffer parameter_gradients_, optimiser_, inputs_, arena_, prepared_;
};

}  // namespace lamina::planner
