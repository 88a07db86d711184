#pragma once
// From nodes to units of work: chains that the backend takes as one, which gradients are wanted, who writes each of
// them first, which values lie inside others, and what the backend made of every unit.

#include <memory>
#include <vector>

#include "lamina/backend.h"
#include "lamina/graph.h"
#include "lamina/plan.h"

namespace lamina::planner {

/// A chain of nodes that runs as one. Values are named by the node that makes them.
struct Unit {
  std::vector<int> nodes;  ///< head, then the tail
  std::vector<int> x;      ///< values read: inputs of the head, then further inputs of each node of the tail
  Spec spec;
  Choice choice;
  std::shared_ptr<const Lowered> lowered;
  bool backward = false;  ///< has a backward part: its y's gradient is wanted
  int y() const { return nodes.back(); }
};

/// A place inside the memory of another value (or gradient), or a place of its own.
struct View {
  int parent = -1;          ///< the value it lies in; -1: none
  std::int64_t offset = 0;  ///< in elements, from the parent's first
};

/// The graph as units, in the order in which they run forward: unit i of N at step i, and backward at step 2N - 1 - i.
struct Units {
  std::vector<Unit> list;
  std::vector<int> producer;              ///< by node: the unit that makes the value; -1 for inputs and inside units
  std::vector<std::vector<int>> readers;  ///< by node: units that read the value, ascending, once per operand
  std::vector<bool> wanted;               ///< by node: whether its gradient is
  std::vector<View> value_view, gradient_view;
  int steps() const { return 2 * static_cast<int>(list.size()); }
  int backward_step(int unit) const { return steps() - 1 - unit; }
  bool forward_is_view(int unit) const;   ///< its y already lies where it must: a Concat or Slice as a view
  bool backward_is_view(int unit) const;  ///< likewise its gradients
};

/// Everything but what the backend makes of the units. Throws what Plan documents of graph and options.
Units find_units(const Graph&, const Backend&, const Options&);

/// Throws what Plan documents, except for what concerns memory.
Units make_units(const Graph&, Backend&, const Options&);

}  // namespace lamina::planner
