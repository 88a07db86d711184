// The calls of a plan.

#include "bind.h"

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "call_cost.h"

namespace lamina::planner {
namespace {

class Binder {
 public:
  Binder(const PlanLayout& layout, const Memory& memory, const std::vector<Node>& nodes)
      : layout_(layout), memory_(memory), nodes_(nodes), specs_(layout.units.list.size()) {
    for (int i = 0; i < static_cast<int>(layout.units.list.size()); ++i) {
      const auto& remade = layout.lives.remade[static_cast<std::size_t>(unit(i).y())];
      if (!remade.writes.empty()) remade_at_[remade.writes[0]].push_back(i);
    }
  }

  void forward(int i, Mode mode) {
    for (const Lowered::Step& step : unit(i).lowered->steps) {
      if (!step.covers(Pass::prepare)) continue;
      if (mode == Mode::inference)
        calls_.prepare.push_back({step.kernel.get(), args(i, Pass::prepare)});
      else
        call(i, step, Pass::prepare);
    }
    if (layout_.units.forward_is_view(i)) return;
    for (const Lowered::Step& step : unit(i).lowered->steps)
      if (step.covers(Pass::forward)) call(i, step, Pass::forward);
  }

  void backward(int i) {
    remake(layout_.units.backward_step(i));
    if (!unit(i).backward || layout_.units.backward_is_view(i)) return;
    const auto& shared = layout_.aliases.dx_shared[static_cast<std::size_t>(i)];
    bool wants_data = false;
    for (std::size_t j = 0; j < unit(i).x.size(); ++j)
      wants_data = wants_data || (unit(i).spec.wants_dx[j] && !shared[j]);
    for (const Lowered::Step& step : unit(i).lowered->steps)
      if (step.covers(Pass::backward_params)) call(i, step, Pass::backward_params);
    for (const Lowered::Step& step : unit(i).lowered->steps)
      if (step.covers(Pass::backward_data) && !step.covers(Pass::backward_params) && wants_data)
        call(i, step, Pass::backward_data);
  }

  Calls take() && { return std::move(calls_); }
  std::size_t count() const { return calls_.bound.size(); }
  void end_forward() { calls_.forward = calls_.bound.size(); }

 private:
  const Unit& unit(int i) const { return layout_.units.list[static_cast<std::size_t>(i)]; }

  /// Makes again what was dropped and is needed from this step on.
  void remake(int when) {
    const auto units = remade_at_.find(when);
    if (units == remade_at_.end()) return;
    for (const int i : units->second) call(i, *find_step(unit(i), Pass::recompute), Pass::recompute);
  }

  void call(int i, const Lowered::Step& step, Pass pass) {
    calls_.bound.push_back({step.kernel.get(), args(i, pass)});
    calls_.described.push_back({unit(i).nodes, spec(i), step.passes, step.algorithm, cost(i, step),
                                step.kernel->workspace_bytes(), step.deterministic, step.math, step.max_error,
                                tied(i, step)});
  }

  /// One copy for all calls of a unit.
  std::shared_ptr<const Spec> spec(int i) {
    auto& shared = specs_[static_cast<std::size_t>(i)];
    if (shared == nullptr) shared = std::make_shared<const Spec>(unit(i).spec);
    return shared;
  }

  Cost cost(int i, const Lowered::Step& step) const {
    return call_cost(unit(i), step.passes, nodes_, layout_.units.wanted,
                     layout_.aliases.dx_shared[static_cast<std::size_t>(i)]);
  }

  std::vector<std::string> tied(int i, const Lowered::Step& step) const {
    if (layout_.tied.empty()) return {};
    const auto& by_pass = layout_.tied[static_cast<std::size_t>(i)];
    for (const Pass pass : step.passes)
      if (const auto p = static_cast<std::size_t>(pass); p < by_pass.size() && !by_pass[p].empty()) return by_pass[p];
    return {};
  }

  /// The tensors of a unit for one pass.
  Args args(int i, Pass pass) const {
    const Unit& u = unit(i);
    const auto index = static_cast<std::size_t>(i);
    const bool forward = pass == Pass::forward;
    const bool backward = pass == Pass::backward_data || pass == Pass::backward_params;
    Args args;
    for (const int x : u.x) args.x.push_back(forward ? memory_.value(x) : memory_.kept_value(x));
    args.y = forward ? memory_.value(u.y()) : memory_.kept_value(u.y());
    for (const int n : u.nodes) {
      const Node& node = nodes_[static_cast<std::size_t>(n)];
      for (std::size_t k = 0; k < node.params.size(); ++k) {
        args.w.push_back(memory_.parameter(n, k));
        if (backward) args.dw.push_back(memory_.parameter_gradient(n, k));
      }
      for (std::size_t k = 0; k < node.state.size(); ++k) args.state.push_back(memory_.state(n, k));
    }
    if (backward) {
      args.dy = memory_.gradient(u.y());
      for (std::size_t j = 0; j < u.x.size(); ++j) {
        const bool wanted = u.spec.wants_dx[j] && !layout_.aliases.dx_shared[index][j];
        args.dx.push_back(wanted ? memory_.gradient(u.x[j]) : Tensor{});
      }
      args.scratch = memory_.address(layout_.scratch[index]);
    }
    args.saved = memory_.address(layout_.saved[index]);
    args.prepared = memory_.address(layout_.prepared[index]);
    const Workspaces& workspace = layout_.workspace[index];
    args.workspace = memory_.address(backward                  ? workspace.backward
                                     : pass == Pass::recompute ? workspace.recompute
                                                               : workspace.forward);
    return args;
  }

  const PlanLayout& layout_;
  const Memory& memory_;
  const std::vector<Node>& nodes_;
  std::unordered_map<int, std::vector<int>> remade_at_;  // units, in order, by step
  std::vector<std::shared_ptr<const Spec>> specs_;       // by unit, of those that have calls
  Calls calls_;
};

}  // namespace

Calls bind(const PlanLayout& layout, const Memory& memory, const std::vector<Node>& nodes, Mode mode) {
  Binder binder(layout, memory, nodes);
  const auto count = static_cast<int>(layout.units.list.size());
  for (int i = 0; i < count; ++i) binder.forward(i, mode);
  binder.end_forward();
  for (int i = count - 1; i >= 0 && mode == Mode::training; --i) binder.backward(i);
  return std::move(binder).take();
}

}  // namespace lamina::planner
