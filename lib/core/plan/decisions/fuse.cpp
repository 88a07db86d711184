// Chains of nodes that the backend takes as one unit.

#include <algorithm>

#include "decisions.h"
#include "lamina/random.h"

namespace lamina::planner {
namespace {

/// By value: the nodes that read it, once for each operand.
EachNode<std::vector<NodeId>> node_readers(const Nodes& nodes) {
  EachNode<std::vector<NodeId>> readers(nodes.size());
  for (const NodeId node : nodes.ids())
    for (const NodeId x : nodes.inputs(node)) readers[x].push_back(node);
  return readers;
}

/// By node: the next node that updates the same running statistics, or none.
EachNode<NodeId> next_updates(const Nodes& nodes) {
  EachNode<NodeId> next(nodes.size(), none<NodeId>), last(nodes.size(), none<NodeId>);
  for (const NodeId node : nodes.ids())
    for (std::size_t k = 0; k < nodes[node].state.size(); ++k) {
      const Slot& of = nodes[node].state_of[k];
      NodeId& before = last[of.node < 0 ? node : NodeId{of.node}];
      if (of.node >= 0 && before != node) next[before] = node;
      before = node;
    }
  return next;
}

/// Builds units, node by node.
class Fuser {
 public:
  /// Reads the producers, readers and types that `units` has for each value.
  Fuser(const Nodes& nodes, const Units& units, const Backend& backend, const Options& options)
      : nodes_(nodes),
        wanted_(units.wanted),
        dtype_(units.dtype),
        backend_(backend),
        options_(options),
        readers_(node_readers(nodes)),
        next_update_(next_updates(nodes)) {}

  /// The chain that starts at `head`, as far as the backend takes it.
  Unit chain(NodeId head) const {
    Unit unit;
    unit.nodes = {head};
    unit.spec.op = completed_op(head);
    read_inputs(unit, head);
    unit.spec.mode = options_.mode;
    unit.spec.adds_dw = options_.accumulate_parameters;
    end_at(unit, head);
    while (options_.fuse && readers_[unit.y()].size() == 1 && joins(unit, readers_[unit.y()][0])) {
      const NodeId next = readers_[unit.y()][0];
      read_inputs(unit, next);
      unit.nodes.push_back(next);
      unit.spec.tail.push_back(completed_op(next));
      end_at(unit, next);
    }
    unit.backward = wanted_[unit.y()];
    return unit;
  }

 private:
  bool joins(const Unit& unit, NodeId next) const {
    const auto inputs = nodes_.inputs(next);
    // A unit computes the gradients of all its parameters or of none.
    const auto has_fixed = [&](NodeId node) {
      return std::ranges::find(nodes_[node].fixed, true) != nodes_[node].fixed.end();
    };
    if (options_.mode == Mode::training && (has_fixed(unit.nodes.front()) || has_fixed(next))) return false;
    // A node with several inputs belongs to the chain that ends last, because the other inputs exist by then.
    if (std::ranges::max(inputs) != unit.y()) return false;
    // In training, statistics are updated in the order of the nodes, and a unit runs where its last node is.
    const auto follows_update = [&](NodeId node) {
      return next_update_[node] != none<NodeId> && next_update_[node] < next;
    };
    if (options_.mode == Mode::training && std::ranges::any_of(unit.nodes, follows_update)) return false;
    // One unit must not read a value through two different ops, because one kernel would have to add the two gradients.
    const auto known = [&](NodeId x) { return std::ranges::find(unit.x, x) != unit.x.end(); };
    if (std::ranges::any_of(inputs, known)) return false;
    // A sum of a value with itself is not fused: both operands would be the value inside the unit, which is not stored.
    // Kernels add one operand to a unit.
    if (std::holds_alternative<Add>(nodes_[next].op) && (inputs.size() != 2 || inputs[0] == inputs[1])) return false;
    const auto operand = std::ranges::find(inputs, unit.y()) - inputs.begin();
    return backend_.fuses(unit.spec, nodes_[next], static_cast<int>(operand));
  }

  /// Adds what the node reads, except the value inside the unit.
  void read_inputs(Unit& unit, NodeId node) const {
    const std::vector<Shape> shapes = input_shapes(nodes_.graph(), nodes_[node]);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const NodeId value{nodes_[node].inputs[i]};
      if (node != unit.nodes.front() && value == unit.y()) continue;
      unit.x.push_back(value);
      Shape shape = shapes[i];  // a sequence of columns stores its numbers as a sequence of rows does
      if (std::holds_alternative<Recurrent>(nodes_[node].op)) shape = {shape.n, shape.c, shape.h * shape.w, 1};
      unit.spec.x.push_back(dense(shape, dtype_[value]));
      unit.spec.wants_dx.push_back(wanted_[value] && whole_numbers(nodes_[node].op, shapes, i) == 0);
      unit.spec.adds_dx.push_back(false);
    }
  }

  /// Extends the unit by this node, which becomes its last.
  void end_at(Unit& unit, NodeId last) const {
    const Node& node = nodes_[last];
    unit.spec.y = dense(node.shape, dtype_[last]);
    for (const Shape& w : node.params) unit.spec.w.push_back(dense(w, parameter_dtype(options_.dtype)));
    for (const Shape& s : node.state) unit.spec.state.push_back(dense(s, state_dtype(node.op, options_.dtype)));
  }

  TensorSpec dense(const Shape& shape, DType dtype) const {
    const std::int64_t pitch = dense_pitch(shape, options_.layout);
    return {shape, dtype, options_.layout, pitch, pitch};
  }

  /// The node's op, completed by the plan's options: the seed, the place of this rank's images, or the ranks.
  Op completed_op(NodeId node) const {
    Op op = nodes_[node].op;
    if (auto* dropout = std::get_if<Dropout>(&op)) {
      dropout->seed ^= hash(nodes_[node].name);
      dropout->batch_offset += options_.batch_offset;
    }
    if (auto* norm = std::get_if<BatchNorm>(&op)) norm->ranks *= options_.sync_batch_norm_ranks;
    return op;
  }

  const Nodes& nodes_;
  const EachNode<bool>& wanted_;
  const EachNode<DType>& dtype_;
  const Backend& backend_;
  const Options& options_;
  EachNode<std::vector<NodeId>> readers_;
  EachNode<NodeId> next_update_;
};

}  // namespace

Units fuse(const Nodes& nodes, const Backend& backend, const Options& options) {
  Units units;
  units.wanted = EachNode<bool>(wanted_gradients(nodes.graph(), options));
  // Whole numbers, losses and what is computed from losses have the parameters' type.
  units.dtype = EachNode<DType>(nodes.size(), options.dtype);
  const std::vector<std::int64_t> numbers = whole_numbers(nodes.graph());
  EachNode<bool> of_loss(nodes.size(), false);
  for (const NodeId node : nodes.ids()) {
    of_loss[node] =
        is_loss(nodes[node].op) || std::ranges::any_of(nodes.inputs(node), [&](NodeId x) { return of_loss[x]; });
    if (numbers[index(node)] > 0 || of_loss[node]) units.dtype[node] = parameter_dtype(options.dtype);
  }
  const Fuser fuser(nodes, units, backend, options);
  EachNode<bool> taken(nodes.size(), false);
  for (const NodeId node : nodes.ids()) {
    if (taken[node] || nodes.is_input(node)) continue;
    Unit unit = fuser.chain(node);
    for (const NodeId member : unit.nodes) taken[member] = true;
    units.list.push_back(std::move(unit));
  }
  // A unit runs at the place of its last node, where everything that its tail reads exists.
  std::sort(units.list.begin(), units.list.end(), [](const Unit& a, const Unit& b) { return a.y() < b.y(); });

  units.producer = EachNode<UnitId>(nodes.size(), none<UnitId>);
  units.readers = EachNode<std::vector<UnitId>>(nodes.size());
  for (const UnitId unit : units.list.ids()) {
    units.producer[units.list[unit].y()] = unit;
    for (const NodeId x : units.list[unit].x) units.readers[x].push_back(unit);
  }
  return units;
}

}  // namespace lamina::planner
