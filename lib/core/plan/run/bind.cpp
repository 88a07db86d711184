// The calls of a plan.

#include "bind.h"

#include <map>
#include <utility>

#include "lib/core/units/unit_memory.h"

namespace lamina::planner {
namespace {

bool is_backward(Pass pass) { return pass == Pass::backward_data || pass == Pass::backward_params; }

/// The tensors and blocks of a unit for one pass.
class UnitInPass {
 public:
  UnitInPass(const PlanLayout& layout, const Memory& memory, const Nodes& nodes, UnitId id, Pass pass)
      : layout_(layout), memory_(memory), id_(id), unit_(layout.units.list[id]), pass_(pass) {
    for (const NodeId node : unit_.nodes) {
      for (std::size_t k = 0; k < nodes[node].params.size(); ++k) parameters_.emplace_back(node, k);
      for (std::size_t k = 0; k < nodes[node].state.size(); ++k) states_.emplace_back(node, k);
    }
  }

  Tensor tensor(Operand operand, std::size_t i, const TensorSpec& spec, std::int64_t) const {
    const auto as_specified = [&](Tensor x) {
      x.shape = spec.shape;
      return x;
    };
    const auto value = [&](NodeId id) { return pass_ == Pass::forward ? memory_.value(id) : memory_.kept_value(id); };
    const bool gradients = is_backward(pass_);
    switch (operand) {
      case Operand::x: return as_specified(value(unit_.x[i]));
      case Operand::y: return value(unit_.y());
      case Operand::w: return memory_.parameter(parameters_[i].first, parameters_[i].second);
      case Operand::state: return memory_.state(states_[i].first, states_[i].second);
      case Operand::dw:
        return gradients ? memory_.parameter_gradient(parameters_[i].first, parameters_[i].second) : Tensor{};
      case Operand::dy: return gradients ? memory_.gradient(unit_.y()) : Tensor{};
      case Operand::dx:
        return gradients && !layout_.aliases.dx_shared[id_][i] ? as_specified(memory_.gradient(unit_.x[i])) : Tensor{};
    }
    return {};
  }

  void* block(Block block, std::size_t) const {
    const Workspaces& workspace = layout_.workspace[id_];
    switch (block) {
      case Block::saved: return memory_.address(layout_.saved[id_]);
      case Block::scratch: return is_backward(pass_) ? memory_.address(layout_.scratch[id_]) : nullptr;
      case Block::prepared: return memory_.address(layout_.prepared[id_]);
      case Block::workspace:
        return memory_.address(is_backward(pass_)         ? workspace.backward
                               : pass_ == Pass::recompute ? workspace.recompute
                                                          : workspace.forward);
    }
    return nullptr;
  }

 private:
  const PlanLayout& layout_;
  const Memory& memory_;
  UnitId id_;
  const Unit& unit_;
  Pass pass_;
  std::vector<std::pair<NodeId, std::size_t>> parameters_, states_;  // node of each, and its number within the node
};

class Binder {
 public:
  Binder(const PlanLayout& layout, const Memory& memory, const Nodes& nodes)
      : layout_(layout), memory_(memory), nodes_(nodes), specs_(layout.units.list.size()) {
    for (const UnitId id : layout.units.list.ids()) {
      const auto& recomputed = layout.lives.recomputed[unit(id).y()];
      if (!recomputed.writes.empty()) recomputed_at_[recomputed.writes[0]].push_back(id);
    }
  }

  void forward(UnitId id, Mode mode) {
    for (const Lowered::Step& step : unit(id).lowered->steps) {
      if (!step.covers(Pass::prepare)) continue;
      if (mode == Mode::inference)
        calls_.prepare.push_back(bound(step, args(id, Pass::prepare)));
      else
        call(id, step, Pass::prepare);
    }
    if (layout_.units.forward_is_view(id)) return;
    for (const Lowered::Step& step : unit(id).lowered->steps)
      if (step.covers(Pass::forward)) call(id, step, Pass::forward);
  }

  void backward(UnitId id) {
    recompute(layout_.units.backward_step(id));
    if (!unit(id).backward || layout_.units.backward_is_view(id)) return;
    const auto& shared = layout_.aliases.dx_shared[id];
    bool wants_data = false;
    for (std::size_t j = 0; j < unit(id).x.size(); ++j)
      wants_data = wants_data || (unit(id).spec.wants_dx[j] && !shared[j]);
    const bool params = std::ranges::any_of(unit(id).nodes, [&](NodeId i) { return computes_gradients(nodes_[i]); });
    for (const Lowered::Step& step : unit(id).lowered->steps)
      if (step.covers(Pass::backward_params) && params) call(id, step, Pass::backward_params);
    for (const Lowered::Step& step : unit(id).lowered->steps)
      if (step.covers(Pass::backward_data) && !step.covers(Pass::backward_params) && wants_data)
        call(id, step, Pass::backward_data);
  }

  Calls take() && { return std::move(calls_); }
  void end_forward() { calls_.forward = calls_.bound.size(); }

 private:
  const Unit& unit(UnitId id) const { return layout_.units.list[id]; }

  /// Recomputes the dropped values that are needed from this step on.
  void recompute(Step when) {
    const auto units = recomputed_at_.find(when);
    if (units == recomputed_at_.end()) return;
    for (const UnitId id : units->second) call(id, *find_step(*unit(id).lowered, Pass::recompute), Pass::recompute);
  }

  void call(UnitId id, const Lowered::Step& step, Pass pass) {
    calls_.bound.push_back(bound(step, args(id, pass)));
    Call described;
    const StepProperties& declared = step;
    static_cast<StepProperties&>(described) = declared;
    for (const NodeId node : unit(id).nodes) described.nodes.push_back(static_cast<int>(node));
    if (specs_[id] == nullptr) specs_[id] = std::make_shared<const Spec>(unit(id).spec);
    described.spec = specs_[id];
    described.cost = call_cost(unit(id), step.passes, nodes_, layout_.units, layout_.aliases.dx_shared[id]);
    described.workspace_bytes = step.kernel->workspace_bytes();
    described.tied = tied(id, step);
    calls_.described.push_back(std::move(described));
  }

  static BoundCall bound(const Lowered::Step& step, Args args) {
    std::shared_ptr<Kernel> kernel = step.kernel->bind(args);
    if (kernel == nullptr) kernel = step.kernel;
    return {std::move(kernel), std::move(args)};
  }

  std::vector<std::string> tied(UnitId id, const Lowered::Step& step) const {
    if (layout_.tied.empty()) return {};
    const auto& by_pass = layout_.tied[id];
    for (const Pass pass : step.passes)
      if (const auto p = static_cast<std::size_t>(pass); p < by_pass.size() && !by_pass[p].empty()) return by_pass[p];
    return {};
  }

  Args args(UnitId id, Pass pass) const {
    return bind_unit(unit(id).spec, *unit(id).lowered, UnitInPass(layout_, memory_, nodes_, id, pass));
  }

  const PlanLayout& layout_;
  const Memory& memory_;
  const Nodes& nodes_;
  std::map<Step, std::vector<UnitId>> recomputed_at_;  // units that are recomputed at each step, in order
  EachUnit<std::shared_ptr<const Spec>> specs_;        // spec of each unit that has calls; its calls share it
  Calls calls_;
};

}  // namespace

Calls bind(const PlanLayout& layout, const Memory& memory, const Nodes& nodes, Mode mode) {
  Binder binder(layout, memory, nodes);
  for (const UnitId unit : layout.units.list.ids()) binder.forward(unit, mode);
  binder.end_forward();
  if (mode == Mode::training)
    for (const UnitId unit : layout.units.list.ids() | std::views::reverse) binder.backward(unit);
  return std::move(binder).take();
}

}  // namespace lamina::planner
