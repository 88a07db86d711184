// When every value and gradient is written and read.

#include "lifetimes.h"

#include <algorithm>

namespace lamina::planner {
namespace {

/// Forward accesses, and backward reads, of every value.
void add_value_accesses(Lifetimes& lives, const Units& units) {
  for (int i = 0; i < static_cast<int>(units.list.size()); ++i) {
    const Unit& unit = units.list[static_cast<std::size_t>(i)];
    const auto y = static_cast<std::size_t>(unit.y());
    lives.value[y].writes.push_back(i);
    for (std::size_t j = 0; j < unit.x.size(); ++j) {
      Accesses& x = lives.value[static_cast<std::size_t>(unit.x[j])];
      x.reads.push_back(i);
      if (unit.backward && flag(unit.lowered->backward_reads_x, j)) x.reads.push_back(units.backward_step(i));
    }
    if (unit.backward && unit.lowered->backward_reads_y) lives.value[y].reads.push_back(units.backward_step(i));
  }
}

void add_gradient_accesses(Lifetimes& lives, const Units& units) {
  for (int i = 0; i < static_cast<int>(units.list.size()); ++i) {
    const Unit& unit = units.list[static_cast<std::size_t>(i)];
    if (!unit.backward) continue;
    const int step = units.backward_step(i);
    lives.gradient[static_cast<std::size_t>(unit.y())].reads.push_back(step);
    for (std::size_t j = 0; j < unit.x.size(); ++j)
      if (unit.spec.wants_dx[j]) lives.gradient[static_cast<std::size_t>(unit.x[j])].writes.push_back(step);
  }
}

/// By value: whether it is a view of another one, or another one of it. Such a value has one life.
std::vector<bool> in_views(const Units& units) {
  std::vector<bool> in_view(units.value_view.size(), false);
  for (std::size_t i = 0; i < in_view.size(); ++i) {
    const int parent = units.value_view[i].parent;
    if (parent < 0) continue;
    in_view[i] = true;
    in_view[static_cast<std::size_t>(parent)] = true;
  }
  return in_view;
}

/// Keep::cheap: a value is dropped after its last forward reader and made again at its first backward reader, if its
/// unit can, and if what it is made from is there anyway.
void drop_cheap_values(Lifetimes& lives, const Units& units, int output) {
  const std::vector<bool> in_view = in_views(units);
  for (std::size_t i = 0; i < units.list.size(); ++i) {
    const Unit& unit = units.list[i];
    const int forward_steps = static_cast<int>(units.list.size());
    Accesses& y = lives.value[static_cast<std::size_t>(unit.y())];
    const auto is_backward = [&](int step) { return step >= forward_steps; };
    const auto first_read = std::min_element(y.reads.begin(), y.reads.end(), [&](int a, int b) {
      return std::pair(!is_backward(a), a) < std::pair(!is_backward(b), b);
    });
    if (unit.y() == output || first_read == y.reads.end() || !is_backward(*first_read) ||
        in_view[static_cast<std::size_t>(unit.y())] || find_step(unit, Pass::recompute) == nullptr)
      continue;
    const int when = *first_read;
    bool inputs_there = true;
    for (std::size_t j = 0; j < unit.x.size(); ++j)
      inputs_there = inputs_there &&
                     (!flag(unit.lowered->recompute_reads_x, j) ||
                      (lives.value[static_cast<std::size_t>(unit.x[j])].last() >= when && !lives.dropped(unit.x[j])));
    if (!inputs_there) continue;

    Accesses& remade = lives.remade[static_cast<std::size_t>(unit.y())];
    remade.writes.push_back(when);
    std::copy_if(y.reads.begin(), y.reads.end(), std::back_inserter(remade.reads), is_backward);
    std::erase_if(y.reads, is_backward);
    for (std::size_t j = 0; j < unit.x.size(); ++j)
      if (flag(unit.lowered->recompute_reads_x, j))
        lives.value[static_cast<std::size_t>(unit.x[j])].reads.push_back(when);
  }
}

}  // namespace

int Accesses::first() const {
  const auto first = std::min_element(writes.begin(), writes.end());
  return first == writes.end() ? forever : *first;
}

int Accesses::last() const {
  int last = -1;
  for (const int step : writes) last = std::max(last, step);
  for (const int step : reads) last = std::max(last, step);
  return last;
}

bool flag(const std::vector<bool>& flags, std::size_t i) { return i < flags.size() && flags[i]; }

const Lowered::Step* find_step(const Unit& unit, Pass pass) {
  for (const Lowered::Step& step : unit.lowered->steps)
    if (step.covers(pass)) return &step;
  return nullptr;
}

Lifetimes make_lifetimes(const Units& units, const std::vector<Node>& nodes, const Options& options) {
  Lifetimes lives;
  lives.value.resize(nodes.size());
  lives.gradient.resize(nodes.size());
  lives.remade.resize(nodes.size());
  add_value_accesses(lives, units);
  add_gradient_accesses(lives, units);

  // What the caller may touch between passes lives for ever: inputs, the output, and their gradients.
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!std::holds_alternative<Input>(nodes[i].op)) continue;
    lives.value[i].writes.push_back(0);
    lives.value[i].reads.push_back(forever);
    if (units.wanted[i]) lives.gradient[i].reads.push_back(forever);
  }
  const std::size_t output = nodes.size() - 1;
  lives.value[output].reads.push_back(forever);
  if (units.wanted[output]) {
    lives.gradient[output].writes.push_back(0);
    lives.gradient[output].reads.push_back(forever);
  }
  if (options.keep == Keep::cheap && options.mode == Mode::training && !options.keep_values)
    drop_cheap_values(lives, units, static_cast<int>(output));
  return lives;
}

}  // namespace lamina::planner
