#pragma once
// A graph as units of work: what is known of each before there is memory.

#include <memory>
#include <vector>

#include "ids.h"
#include "lamina/backend.h"
#include "lamina/plan.h"

namespace lamina::planner {

/// A chain of nodes that runs as one call per pass.
struct Unit {
  std::vector<NodeId> nodes;  ///< head, then the tail
  std::vector<NodeId> x;      ///< values read: inputs of the head, then further inputs of each node of the tail
  Spec spec;
  Choice choice;
  std::shared_ptr<const Lowered> lowered;
  bool backward = false;  ///< has a backward part: its y's gradient is wanted
  NodeId y() const { return nodes.back(); }
};

/// A place inside the memory of another value (or gradient), or a separate place.
struct View {
  NodeId parent = none<NodeId>;  ///< the value that it is a part of; none: a separate place
  std::int64_t offset = 0;       ///< in elements, from the parent's first
};

/// The units in the order in which they run forward. One clock counts the steps of both passes: unit i of N runs
/// forward at step i and backward at step 2N - 1 - i.
struct Units {
  EachUnit<Unit> list;
  EachNode<UnitId> producer;              ///< the unit that makes the value; none for inputs and inside units
  EachNode<std::vector<UnitId>> readers;  ///< units that read the value, ascending, once per operand
  EachNode<bool> wanted;                  ///< whether the value's gradient is
  EachNode<DType> dtype;                  ///< of the value and of its gradient
  EachNode<View> value_view, gradient_view;
  std::vector<Slot> cleared;  ///< parameters whose gradient is zeroed before backward: all who write it add

  Step forward_step(UnitId unit) const { return Step{static_cast<int>(unit)}; }
  Step backward_step(UnitId unit) const { return Step{static_cast<int>(index(end())) - 1 - static_cast<int>(unit)}; }
  Step end() const { return Step{2 * static_cast<int>(list.size())}; }  ///< the one after the last
  bool is_backward(Step step) const { return index(step) >= list.size(); }
  bool forward_is_view(UnitId) const;   ///< its y is already in place: a Concat or Slice as a view
  bool backward_is_view(UnitId) const;  ///< its dx are already in place
};

/// The inputs of a node that may have a gradient: not labels and ids.
std::vector<NodeId> differentiable_inputs(const Nodes&, NodeId);

/// Whether the node has a parameter that is not fixed.
bool trains(const Node&);
/// Whether a pass computes gradients of the node's parameters: not where all are fixed, unless dx needs them.
bool computes_gradients(const Node&);

/// By node: whether the output's gradient reaches it, so that its own is defined: not where it is read as labels or ids
/// alone.
EachNode<bool> reached_by_gradients(const Nodes&);

}  // namespace lamina::planner
