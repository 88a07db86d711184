#pragma once
// A graph as units of work, and what is known of each unit before memory is allocated. A plan numbers nodes (and the
// values that they make), units and steps. Each of these numbers has its own type, so that a number of one kind cannot
// be used as another.

#include <cstddef>
#include <memory>
#include <ranges>
#include <utility>
#include <vector>

#include "lamina/backend.h"
#include "lamina/plan.h"

namespace lamina::planner {

enum class NodeId : int {};  ///< a node of the graph, and the value that it makes
enum class UnitId : int {};  ///< units in the order in which they run forward
enum class Step : int {};    ///< one clock counts the steps of both passes: see Units

/// The id that stands for nothing.
template <class Id>
constexpr Id none{-1};

template <class Id>
constexpr std::size_t index(Id id) {
  return static_cast<std::size_t>(id);
}

/// The first `count` ids, in order.
template <class Id>
auto first_ids(std::size_t count) {
  return std::views::iota(0, static_cast<int>(count)) | std::views::transform([](int i) { return Id{i}; });
}

/// One element for each node or unit.
template <class Id, class T>
class Each : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  explicit Each(std::vector<T> all) : std::vector<T>(std::move(all)) {}

  decltype(auto) operator[](Id id) { return std::vector<T>::operator[](index(id)); }
  decltype(auto) operator[](Id id) const { return std::vector<T>::operator[](index(id)); }
  auto ids() const { return first_ids<Id>(this->size()); }
};

template <class T>
using EachNode = Each<NodeId, T>;
template <class T>
using EachUnit = Each<UnitId, T>;

/// The nodes of a graph, which must outlive it.
class Nodes {
 public:
  explicit Nodes(const Graph& graph) : graph_(&graph), all_(&graph.nodes()) {}

  const Graph& graph() const { return *graph_; }
  const Node& operator[](NodeId id) const { return (*all_)[index(id)]; }
  std::size_t size() const { return all_->size(); }
  auto ids() const { return first_ids<NodeId>(all_->size()); }
  NodeId output() const { return NodeId{static_cast<int>(all_->size()) - 1}; }
  bool is_input(NodeId id) const { return std::holds_alternative<Input>((*this)[id].op); }
  NodeId input(NodeId id, std::size_t k) const { return NodeId{(*this)[id].inputs[k]}; }
  auto inputs(NodeId id) const {
    return (*this)[id].inputs | std::views::transform([](int i) { return NodeId{i}; });
  }

 private:
  const Graph* graph_;
  const std::vector<Node>* all_;
};

/// A chain of nodes that runs as one call per pass.
struct Unit {
  std::vector<NodeId> nodes;  ///< head, then the tail
  std::vector<NodeId> x;  ///< values that it reads: inputs of the head, then further inputs of each node of the tail
  Spec spec;
  Choice choice;
  std::shared_ptr<const Lowered> lowered;
  bool backward = false;  ///< whether it has a backward part, because the gradient of its y is wanted
  NodeId y() const { return nodes.back(); }
};

/// A place inside the memory of another value (or gradient), or a separate place.
struct View {
  NodeId parent = none<NodeId>;  ///< value that it is a part of; none: a separate place
  std::int64_t offset = 0;       ///< offset from the first element of the parent, in elements
};

/// The units in the order in which they run forward. One clock counts the steps of both passes: unit i of N runs
/// forward at step i and backward at step 2N - 1 - i.
struct Units {
  EachUnit<Unit> list;
  EachNode<UnitId> producer;              ///< the unit that makes the value; none for inputs and values inside units
  EachNode<std::vector<UnitId>> readers;  ///< units that read the value, ascending, once per operand
  EachNode<bool> wanted;                  ///< whether the gradient of the value is wanted
  EachNode<DType> dtype;                  ///< element type of the value and of its gradient
  EachNode<View> value_view, gradient_view;
  std::vector<Slot> cleared;  ///< parameters whose gradient is set to zero before backward, because every unit that
                              ///< writes it adds to it

  Step forward_step(UnitId unit) const { return Step{static_cast<int>(unit)}; }
  Step backward_step(UnitId unit) const { return Step{static_cast<int>(index(end())) - 1 - static_cast<int>(unit)}; }
  Step end() const { return Step{2 * static_cast<int>(list.size())}; }  ///< the step after the last
  bool is_backward(Step step) const { return index(step) >= list.size(); }
  bool forward_is_view(UnitId) const;   ///< whether its y is already in place: a Concat or Slice as a view
  bool backward_is_view(UnitId) const;  ///< whether its dx are already in place
};

/// The inputs of a node that may have a gradient: not labels and ids.
std::vector<NodeId> differentiable_inputs(const Nodes&, NodeId);

/// Whether the node has a parameter that is not fixed.
bool trains(const Node&);
/// Whether a pass computes gradients of the node's parameters: if one of them is not fixed, or if dx needs them.
bool computes_gradients(const Node&);

/// By node: whether the gradient of the output reaches it, so that the node's gradient is defined. A value that is read
/// only as labels or ids is not reached.
EachNode<bool> reached_by_gradients(const Nodes&);

}  // namespace lamina::planner
