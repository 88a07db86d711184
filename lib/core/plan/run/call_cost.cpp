// The least cost of a call of a plan: the arithmetic of its ops, and the bytes that its unit reads and writes.
//
// forward     reads the inputs, parameters and state, writes y; recompute reads the state of a ScaleShift only
// backward    reads dy, writes the wanted gradients of inputs and parameters, and reads what they are computed from
//             (lib/core/units/op_reads.h); y only if the backend reads it

#include "bind.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "lib/core/units/op_reads.h"
#include "lib/core/units/spec_passes.h"

namespace lamina::planner {
namespace {

/// Whether the gradient of any input of the node is wanted.
bool wants_dx(const Nodes& nodes, NodeId node, const EachNode<bool>& wanted) {
  return std::ranges::any_of(differentiable_inputs(nodes, node), [&](NodeId x) { return wanted[x]; });
}

enum class Part { value, gradient, parameter, parameter_gradient, state };

/// The tensors that one call touches, each once.
class Border {
 public:
  Border(const Unit& unit, const Nodes& nodes, const Units& units, const std::vector<bool>& dx_shared)
      : unit_(unit),
        nodes_(nodes),
        units_(units),
        parameter_dtype_(parameter_dtype(unit.spec.y.dtype)),
        dx_shared_(dx_shared) {}

  double bytes() const { return bytes_; }

  void add(Pass pass) {
    switch (pass) {
      case Pass::forward:
      case Pass::recompute: return forward(pass);
      case Pass::backward_params: return backward_params();
      case Pass::backward_data: return backward_data();
      case Pass::prepare: return;
    }
  }

 private:
  bool crosses(NodeId value) const { return value == unit_.y() || std::ranges::find(unit_.x, value) != unit_.x.end(); }

  void touch(Part part, NodeId i, std::size_t index, const Shape& extent, DType type) {
    if (touched_.insert({part, i, index}).second)
      bytes_ += static_cast<double>(extent.count()) * static_cast<double>(size_of(type));
  }
  void touch_value(NodeId i, const Shape& extent) {
    if (crosses(i)) touch(Part::value, i, 0, extent, units_.dtype[i]);
  }
  void touch_value(NodeId i) { touch_value(i, nodes_[i].shape); }
  void touch_dy() {
    const NodeId y = unit_.y();
    const Shape extent = backward_reads_dy(nodes_[y].op, nodes_[nodes_.inputs(y).front()].shape, unit_.spec.y.shape);
    touch(Part::gradient, y, 0, extent, units_.dtype[y]);
  }
  void touch_mask() {
    if (unit_.nodes.size() > 1 && unit_.lowered->backward_reads_y) touch_value(unit_.y());
  }

  /// Counts what a pass of one node reads besides dy.
  void touch_reads(NodeId i, Pass pass) {
    using Inputs = OpReads::Inputs;
    const Node& node = nodes_[i];
    const OpReads reads = op_reads(node.op, pass);
    const std::vector<Shape> x = input_shapes(nodes_.graph(), node);
    for (std::size_t k = 0; k < x.size(); ++k)
      if (reads.x == Inputs::all || (reads.x == Inputs::first && k == 0) ||
          (reads.x == Inputs::others && units_.wanted[nodes_.input(i, 1 - k)]))
        touch_value(nodes_.input(i, k), forward_reads(node.op, x[k], node.shape));
    if (reads.y && unit_.lowered->backward_reads_y) touch_value(i);
    for (std::size_t k = 0; k < node.params.size() && static_cast<int>(k) < reads.params; ++k)
      touch(Part::parameter, i, k, forward_reads_parameter(node.op, x, node.params[k]), parameter_dtype_);
    for (std::size_t k = 0; reads.state && k < node.state.size(); ++k)
      touch(Part::state, i, k, node.state[k], state_dtype(node.op, parameter_dtype_));
  }

  void forward(Pass pass) {
    for (const NodeId i : unit_.nodes) {
      touch_reads(i, pass);
      touch_value(i);
    }
  }

  void backward_params() {
    for (const NodeId i : unit_.nodes) {
      if (nodes_[i].params.empty()) continue;
      touch_reads(i, Pass::backward_params);
      for (std::size_t k = 0; k < nodes_[i].params.size(); ++k)
        touch(Part::parameter_gradient, i, k, nodes_[i].params[k], parameter_dtype_);
      touch_dy();
      touch_mask();
    }
  }

  void backward_data() {
    if (!wants(unit_.spec, Pass::backward_data)) return;
    touch_dy();
    touch_mask();
    for (std::size_t j = 0; j < unit_.x.size(); ++j)
      if (unit_.spec.wants_dx[j] && !dx_shared_[j])
        touch(Part::gradient, unit_.x[j], 0, unit_.spec.x[j].shape, units_.dtype[unit_.x[j]]);
    for (const NodeId i : unit_.nodes)
      if (wants_dx(nodes_, i, units_.wanted)) touch_reads(i, Pass::backward_data);
  }

  const Unit& unit_;
  const Nodes& nodes_;
  const Units& units_;
  DType parameter_dtype_;
  const std::vector<bool>& dx_shared_;
  std::set<std::tuple<Part, NodeId, std::size_t>> touched_;
  double bytes_ = 0;
};

}  // namespace

Cost call_cost(const Unit& unit, const std::vector<Pass>& passes, const Nodes& nodes, const Units& units,
               const std::vector<bool>& dx_shared) {
  Border border(unit, nodes, units, dx_shared);
  double flops = 0;
  for (const Pass pass : passes) {
    border.add(pass);
    for (const NodeId i : unit.nodes) {
      if (pass == Pass::backward_params && nodes[i].params.empty()) continue;
      if (pass == Pass::backward_data && !wants_dx(nodes, i, units.wanted)) continue;
      flops += cost(nodes[i].op, input_shapes(nodes.graph(), nodes[i]), pass, unit.spec.y.dtype).flops;
    }
  }
  return {flops, border.bytes()};
}

}  // namespace lamina::planner
