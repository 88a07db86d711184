// What a call of a plan costs at least.

#include "call_cost.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace lamina::bench {
namespace {

template <class AnyOp>
bool holds(const Op& op) {
  return std::holds_alternative<AnyOp>(op);
}

/// What a pass may touch of a node.
enum class Part { value, gradient, parameter, parameter_gradient, state };

/// The tensors that one call touches, each once.
class Border {
 public:
  Border(const std::vector<int>& unit, const Graph& graph, const std::vector<bool>& wanted, DType dtype)
      : unit_(unit), graph_(graph), wanted_(wanted), dtype_(dtype) {}

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
  const Node& node(int i) const { return graph_.nodes()[static_cast<std::size_t>(i)]; }
  const Op& op(std::size_t place) const { return node(unit_[place]).op; }
  bool wanted(int i) const { return wanted_[static_cast<std::size_t>(i)]; }

  /// Whether the value is made and used up within the unit.
  bool inside(int value) const { return std::find(unit_.begin(), unit_.end() - 1, value) != unit_.end() - 1; }

  void touch(Part part, int i, std::size_t index, double elements, DType dtype) {
    if (touched_.insert({part, i, index}).second) bytes_ += elements * static_cast<double>(size_of(dtype));
  }
  void touch_value(int i, const Shape& extent) {
    if (!inside(i)) touch(Part::value, i, 0, static_cast<double>(extent.count()), dtype_);
  }
  void touch_value(int i) { touch_value(i, node(i).shape); }
  void touch_gradient(int i) {
    if (!inside(i)) touch(Part::gradient, i, 0, static_cast<double>(node(i).shape.count()), dtype_);
  }
  void touch_parameters(int i, Part part, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) touch(part, i, k, static_cast<double>(node(i).params[k].count()), dtype_);
  }
  void touch_state(int i) {
    for (std::size_t k = 0; k < node(i).state.size(); ++k)
      touch(Part::state, i, k, static_cast<double>(node(i).state[k].count()), state_dtype(node(i).op, dtype_));
  }

  void forward(bool with_parameters) {
    for (const int i : unit_) {
      for (const int x : node(i).inputs) holds<Slice>(node(i).op) ? touch_value(x, node(i).shape) : touch_value(x);
      touch_value(i);
      if (!with_parameters) continue;
      touch_parameters(i, Part::parameter, node(i).params.size());
      touch_state(i);
    }
  }

  void backward_params() {
    for (std::size_t place = 0; place < unit_.size(); ++place) {
      const int i = unit_[place];
      if (node(i).params.empty()) continue;
      for (const int x : node(i).inputs) touch_value(x);
      touch_parameters(i, Part::parameter_gradient, node(i).params.size());
      touch_gradient(unit_.back());
      for (std::size_t behind = place + 1; behind < unit_.size(); ++behind) touch_mask(behind);
    }
  }

  void backward_data() {
    const bool any = std::any_of(unit_.begin(), unit_.end(), [&](int i) {
      return std::any_of(node(i).inputs.begin(), node(i).inputs.end(), [&](int x) { return wanted(x) && !inside(x); });
    });
    if (!any) return;
    touch_gradient(unit_.back());
    for (std::size_t place = 0; place < unit_.size(); ++place) {
      const int i = unit_[place];
      touch_mask(place);
      const bool adds_behind = place > 0 && holds<Add>(op(place));
      if (!adds_behind || masked_behind(place))
        for (const int x : node(i).inputs)
          if (wanted(x)) touch_gradient(x);
      if (!wanted(node(i).inputs.front())) continue;  // an op of one input makes nothing then
      if (holds<BatchNorm>(node(i).op) || holds<Lrn>(node(i).op)) touch_value(node(i).inputs.front());
      if (holds<BatchNorm>(node(i).op)) touch_parameters(i, Part::parameter, 2);
      if (holds<Conv>(node(i).op) || holds<FullyConnected>(node(i).op)) touch_parameters(i, Part::parameter, 1);
      if (holds<Softmax>(node(i).op)) touch_value(i);
      if (holds<Dropout>(node(i).op)) touch_state(i);
    }
  }

  bool masked_behind(std::size_t place) const {
    return std::any_of(unit_.begin() + static_cast<std::ptrdiff_t>(place) + 1, unit_.end(),
                       [&](int i) { return holds<Relu>(node(i).op); });
  }

  /// What tells where a ReLU let the gradient through, if one stands here.
  void touch_mask(std::size_t place) {
    if (!holds<Relu>(op(place))) return;
    if (place > 0 && holds<BatchNorm>(op(place - 1))) return touch_value(node(unit_[place - 1]).inputs.front());
    touch_value(unit_[place]);
  }

  const std::vector<int>& unit_;
  const Graph& graph_;
  const std::vector<bool>& wanted_;
  DType dtype_;
  std::set<std::tuple<Part, int, std::size_t>> touched_;
  double bytes_ = 0;
};

double flops_of(const Node& node, const Graph& graph, Pass pass, const std::vector<bool>& wanted, DType dtype) {
  if (pass == Pass::backward_params && node.params.empty()) return 0;
  const bool wants_dx =
      std::any_of(node.inputs.begin(), node.inputs.end(), [&](int x) { return wanted[static_cast<std::size_t>(x)]; });
  if (pass == Pass::backward_data && !wants_dx) return 0;
  return cost(node.op, input_shapes(graph, node), pass, dtype).flops;
}

}  // namespace

Cost call_cost(const Call& call, const Graph& graph, const std::vector<bool>& wanted, DType dtype) {
  Border border(call.nodes, graph, wanted, dtype);
  double flops = 0;
  for (const Pass pass : call.passes) {
    border.add(pass);
    for (const int i : call.nodes)
      flops += flops_of(graph.nodes()[static_cast<std::size_t>(i)], graph, pass, wanted, dtype);
  }
  return {flops, border.bytes()};
}

GraphCost plan_cost(const Plan& plan) {
  const std::vector<bool> wanted = wanted_gradients(plan.graph(), plan.options().input_gradient);
  GraphCost sum;
  for (std::size_t i = 0; i < plan.calls().size(); ++i) {
    const Cost one = call_cost(plan.calls()[i], plan.graph(), wanted, plan.options().dtype);
    Cost& to = i < plan.forward_calls() ? sum.forward : sum.backward;
    to.flops += one.flops;
    to.bytes += one.bytes;
  }
  return sum;
}

}  // namespace lamina::bench
