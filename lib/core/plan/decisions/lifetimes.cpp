// When every value and gradient is written and read.

#include <algorithm>
#include <iterator>

#include "decisions.h"
#include "lib/core/units/unit_memory.h"

namespace lamina::planner {
namespace {

/// Adds the forward accesses and the backward reads of every value.
void add_value_accesses(Lifetimes& lives, const Units& units) {
  for (const UnitId id : units.list.ids()) {
    const Unit& unit = units.list[id];
    Accesses& y = lives.value[unit.y()];
    y.writes.push_back(units.forward_step(id));
    for (std::size_t j = 0; j < unit.x.size(); ++j) {
      Accesses& x = lives.value[unit.x[j]];
      x.reads.push_back(units.forward_step(id));
      if (unit.backward && flag(unit.lowered->backward_reads_x, j)) x.reads.push_back(units.backward_step(id));
    }
    if (unit.backward && unit.lowered->backward_reads_y) y.reads.push_back(units.backward_step(id));
  }
}

void add_gradient_accesses(Lifetimes& lives, const Units& units) {
  for (const UnitId id : units.list.ids()) {
    const Unit& unit = units.list[id];
    if (!unit.backward) continue;
    const Step step = units.backward_step(id);
    lives.gradient[unit.y()].reads.push_back(step);
    for (std::size_t j = 0; j < unit.x.size(); ++j)
      if (unit.spec.wants_dx[j]) lives.gradient[unit.x[j]].writes.push_back(step);
  }
}

/// Extends the lives of the tensors that the caller may access between passes to the life of the plan: inputs, the
/// output, and their gradients.
void keep_what_the_caller_touches(Lifetimes& lives, const Units& units, const Nodes& nodes) {
  for (const NodeId node : nodes.ids()) {
    if (!nodes.is_input(node)) continue;
    lives.value[node].writes.push_back(Step{0});
    lives.value[node].reads.push_back(forever);
    if (units.wanted[node]) lives.gradient[node].reads.push_back(forever);
  }
  lives.value[nodes.output()].reads.push_back(forever);
  if (!units.wanted[nodes.output()]) return;
  lives.gradient[nodes.output()].writes.push_back(Step{0});
  lives.gradient[nodes.output()].reads.push_back(forever);
}

/// Whether a value is a view of another value, or has views. Such a value is never dropped.
EachNode<bool> in_views(const Units& units) {
  EachNode<bool> in_view(units.value_view.size(), false);
  for (const NodeId value : in_view.ids()) {
    const NodeId parent = units.value_view[value].parent;
    if (parent == none<NodeId>) continue;
    in_view[value] = true;
    in_view[parent] = true;
  }
  return in_view;
}

/// Keep::cheap: drops a value after its last forward reader and recomputes it for its first backward reader. The unit
/// must be able to recompute, and its inputs must exist at that step anyway.
void drop_cheap_values(Lifetimes& lives, const Units& units, NodeId output) {
  const EachNode<bool> in_view = in_views(units);
  const auto is_backward = [&](Step step) { return units.is_backward(step); };
  for (const Unit& unit : units.list) {
    Accesses& y = lives.value[unit.y()];
    const auto first_read = std::ranges::min_element(
        y.reads, [&](Step a, Step b) { return std::pair(!is_backward(a), a) < std::pair(!is_backward(b), b); });
    if (unit.y() == output || first_read == y.reads.end() || !is_backward(*first_read) || in_view[unit.y()] ||
        find_step(*unit.lowered, Pass::recompute) == nullptr)
      continue;
    const Step when = *first_read;
    const auto is_there = [&](NodeId x) { return lives.value[x].last() >= when && !lives.dropped(x); };
    if (!std::ranges::all_of(unit.x, is_there)) continue;

    Accesses& recomputed = lives.recomputed[unit.y()];
    recomputed.writes.push_back(when);
    std::ranges::copy_if(y.reads, std::back_inserter(recomputed.reads), is_backward);
    std::erase_if(y.reads, is_backward);
    for (const NodeId x : unit.x) lives.value[x].reads.push_back(when);
  }
}

}  // namespace

Step Accesses::first() const { return writes.empty() ? forever : std::ranges::min(writes); }

Step Accesses::last() const {
  Step last = none<Step>;
  for (const Step step : writes) last = std::max(last, step);
  for (const Step step : reads) last = std::max(last, step);
  return last;
}

bool flag(const std::vector<bool>& flags, std::size_t i) { return i < flags.size() && flags[i]; }

Lifetimes make_lifetimes(const Units& units, const Nodes& nodes, const Options& options) {
  Lifetimes lives;
  lives.value = lives.gradient = lives.recomputed = EachNode<Accesses>(nodes.size());
  add_value_accesses(lives, units);
  add_gradient_accesses(lives, units);
  keep_what_the_caller_touches(lives, units, nodes);
  if (options.keep == Keep::cheap && options.mode == Mode::training && !options.keep_values)
    drop_cheap_values(lives, units, nodes.output());
  return lives;
}

}  // namespace lamina::planner
