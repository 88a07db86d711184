// The least cost of a call of a plan: the arithmetic of its ops, and the bytes that its unit reads and writes.
//
// forward     reads the inputs, parameters and state, writes y; recompute: the inputs and y
// backward    reads dy, writes the wanted gradients of inputs and parameters, and reads what they are computed from:
//             the input of convolution, fully connected, LSTM, batch norm and LRN, logits and labels, ids, the weight,
//             of hard swish and SiLU, the other input of a multiplication, the y of softmax, sigmoid, tanh, clip and
//             hard sigmoid, and y if the unit ends in a ReLU and its backend reads the mask from y; of an embedding's
//             table only as many rows are read as there are ids

#include "call_cost.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace lamina::planner {
namespace {

template <class... AnyOp>
bool is(const Op& op) {
  return (std::holds_alternative<AnyOp>(op) || ...);
}

bool has(const std::vector<bool>& flags) { return std::ranges::find(flags, true) != flags.end(); }

/// Whether the gradient of any input of the node is wanted.
bool wants_dx(const Nodes& nodes, NodeId node, const EachNode<bool>& wanted) {
  return std::ranges::any_of(differentiable_inputs(nodes, node), [&](NodeId x) { return wanted[x]; });
}

enum class Part { value, gradient, parameter, parameter_gradient, state };

/// The tensors that one call touches, each once.
class Border {
 public:
  Border(const Unit& unit, const Nodes& nodes, const EachNode<bool>& wanted, const std::vector<bool>& dx_shared)
      : unit_(unit), nodes_(nodes), wanted_(wanted), dx_shared_(dx_shared) {}

  double bytes() const { return bytes_; }

  void add(Pass pass) {
    switch (pass) {
      case Pass::forward: return forward(true);
      case Pass::recompute: return forward(false);
      case Pass::backward_params: return backward_params();
      case Pass::backward_data: return backward_data();
      case Pass::prepare: return;
    }
  }

 private:
  DType dtype() const { return unit_.spec.y.dtype; }

  bool crosses(NodeId value) const { return value == unit_.y() || std::ranges::find(unit_.x, value) != unit_.x.end(); }

  void touch(Part part, NodeId i, std::size_t index, const Shape& extent, DType type) {
    if (touched_.insert({part, i, index}).second)
      bytes_ += static_cast<double>(extent.count()) * static_cast<double>(size_of(type));
  }
  void touch_value(NodeId i, const Shape& extent) {
    if (crosses(i)) touch(Part::value, i, 0, extent, dtype());
  }
  void touch_value(NodeId i) { touch_value(i, nodes_[i].shape); }
  /// Of a padded value's gradient the border is not read.
  void touch_dy() {
    const NodeId y = unit_.y();
    touch(Part::gradient, y, 0, is<Pad>(nodes_[y].op) ? nodes_[unit_.x[0]].shape : unit_.spec.y.shape, dtype());
  }
  void touch_parameters(NodeId i, Part part, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) touch(part, i, k, nodes_[i].params[k], dtype());
  }
  /// The rows of a table that ids choose.
  void touch_rows(NodeId i) {
    Shape rows = nodes_[i].params[0];
    for (const NodeId x : nodes_.inputs(i))
      rows.n = static_cast<int>(std::min<std::int64_t>(rows.n, nodes_[x].shape.count()));
    touch(Part::parameter, i, 0, rows, dtype());
  }
  void touch_state(NodeId i) {
    for (std::size_t k = 0; k < nodes_[i].state.size(); ++k)
      touch(Part::state, i, k, nodes_[i].state[k], state_dtype(nodes_[i].op, dtype()));
  }
  void touch_mask() {
    if (is<Relu>(nodes_[unit_.y()].op) && unit_.lowered->backward_reads_y) touch_value(unit_.y());
  }

  void forward(bool with_parameters) {
    for (const NodeId i : unit_.nodes) {
      for (const NodeId x : nodes_.inputs(i))
        is<Slice>(nodes_[i].op) ? touch_value(x, nodes_[i].shape) : touch_value(x);
      touch_value(i);
      if (is<Embedding>(nodes_[i].op)) touch_rows(i);
      if (!with_parameters) continue;
      if (!is<Embedding>(nodes_[i].op)) touch_parameters(i, Part::parameter, nodes_[i].params.size());
      touch_state(i);
    }
  }

  void backward_params() {
    for (const NodeId i : unit_.nodes) {
      if (nodes_[i].params.empty()) continue;
      for (const NodeId x : nodes_.inputs(i)) touch_value(x);
      touch_parameters(i, Part::parameter_gradient, nodes_[i].params.size());
      touch_dy();
      touch_mask();
    }
  }

  void backward_data() {
    if (!has(unit_.spec.wants_dx)) return;
    touch_dy();
    touch_mask();
    for (std::size_t j = 0; j < unit_.x.size(); ++j)
      if (unit_.spec.wants_dx[j] && !dx_shared_[j])
        touch(Part::gradient, unit_.x[j], 0, unit_.spec.x[j].shape, dtype());
    for (const NodeId i : unit_.nodes) {
      if (!wants_dx(nodes_, i, wanted_)) continue;
      if (is<BatchNorm, Lrn, HardSwish, Silu>(nodes_[i].op)) touch_value(nodes_.inputs(i).front());
      if (is<BatchNorm>(nodes_[i].op)) touch_parameters(i, Part::parameter, 2);
      if (is<Conv, FullyConnected>(nodes_[i].op)) touch_parameters(i, Part::parameter, 1);
      if (is<Lstm>(nodes_[i].op)) touch_parameters(i, Part::parameter, 2);
      if (is<Softmax, Sigmoid, Tanh, Clip, HardSigmoid>(nodes_[i].op)) touch_value(i);
      if (is<Multiply>(nodes_[i].op))
        for (const std::size_t k : {0, 1})
          if (wanted_[nodes_.inputs(i)[k]]) touch_value(nodes_.inputs(i)[1 - k]);
      if (is<SoftmaxCrossEntropy, SigmoidCrossEntropy>(nodes_[i].op))
        for (const NodeId x : nodes_.inputs(i)) touch_value(x);
      if (is<Dropout>(nodes_[i].op)) touch_state(i);
    }
  }

  const Unit& unit_;
  const Nodes& nodes_;
  const EachNode<bool>& wanted_;
  const std::vector<bool>& dx_shared_;
  std::set<std::tuple<Part, NodeId, std::size_t>> touched_;
  double bytes_ = 0;
};

}  // namespace

Cost call_cost(const Unit& unit, const std::vector<Pass>& passes, const Nodes& nodes, const EachNode<bool>& wanted,
               const std::vector<bool>& dx_shared) {
  Border border(unit, nodes, wanted, dx_shared);
  double flops = 0;
  for (const Pass pass : passes) {
    border.add(pass);
    for (const NodeId i : unit.nodes) {
      if (pass == Pass::backward_params && nodes[i].params.empty()) continue;
      if (pass == Pass::backward_data && !wants_dx(nodes, i, wanted)) continue;
      std::vector<Shape> x;
      for (const NodeId input : nodes.inputs(i)) x.push_back(nodes[input].shape);
      flops += cost(nodes[i].op, x, pass, unit.spec.y.dtype).flops;
    }
  }
  return {flops, border.bytes()};
}

}  // namespace lamina::planner
