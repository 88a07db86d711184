// Parameters and running statistics that several nodes use. Each use records which node has the memory.

#include "share.h"

#include <algorithm>
#include <utility>

#include "lamina/error.h"
#include "lamina/near_names.h"

namespace lamina::graph {
namespace {

const Slot& home(const std::vector<Node>& nodes, const Slots& slots, const Slot& slot) {
  const Slot& of = (nodes[static_cast<std::size_t>(slot.node)].*slots.of)[slot.index];
  return of.node < 0 ? slot : of;
}

std::string name_of(const std::vector<Node>& nodes, const Slots& slots, const Slot& slot) {
  const Node& node = nodes[static_cast<std::size_t>(slot.node)];
  return node.name + "." + std::string(slots.names(node.op)[slot.index]);
}

/// Calls visit(slot) for the parameters, or the states, of all nodes.
template <class Visit>
void each(const std::vector<Node>& nodes, const Slots& slots, Visit visit) {
  for (std::size_t node = 0; node < nodes.size(); ++node)
    for (std::size_t k = 0; k < (nodes[node].*slots.shapes).size(); ++k) visit(Slot{static_cast<int>(node), k});
}

/// Whether a state can be shared: only running statistics of batch norms can. A dropout counts its own steps, and other
/// states are constants.
bool sharable(const Node& node, const Slots& slots) {
  return slots.of != state_slots.of || std::holds_alternative<BatchNorm>(node.op);
}

/// A parameter or state by its name; node -1: there is none.
Slot find(const std::vector<Node>& nodes, const Slots& slots, std::string_view name) {
  Slot found;
  each(nodes, slots, [&](const Slot& slot) {
    if (sharable(nodes[static_cast<std::size_t>(slot.node)], slots) && name_of(nodes, slots, slot) == name)
      found = slot;
  });
  return found;
}

/// The slots of two tensors that become one, the earlier slot first. They are equal if the tensors are one already.
/// Throws what Graph::share does.
std::pair<Slot, Slot> checked(const std::string& graph, const std::vector<Node>& nodes, const Slots& slots, Slot a,
                              Slot b) {
  const std::string what = "graph \"" + graph + "\": " + name_of(nodes, slots, a) + " cannot be shared with " +
                           name_of(nodes, slots, b) + ": ";
  const auto shape = [&](const Slot& slot) {
    return (nodes[static_cast<std::size_t>(slot.node)].*slots.shapes)[slot.index];
  };
  if (shape(a) != shape(b))
    throw ShapeError(what + "it is " + to_string(shape(a)) + ", and not " + to_string(shape(b)));
  const std::pair<Slot, Slot> both = std::minmax(home(nodes, slots, a), home(nodes, slots, b));
  std::vector<int> of_first, of_second;
  each(nodes, slots, [&](const Slot& slot) {
    if (home(nodes, slots, slot) == both.first) of_first.push_back(slot.node);
    if (home(nodes, slots, slot) == both.second) of_second.push_back(slot.node);
  });
  if (both.first != both.second)
    for (const int node : of_first)
      if (std::ranges::find(of_second, node) != of_second.end())
        throw UsageError(what + "node " + nodes[static_cast<std::size_t>(node)].name + " would use it twice");
  return both;
}

bool is_parameter(const Slots& slots) { return slots.of == parameter_slots.of; }

bool fixed(const std::vector<Node>& nodes, const Slot& slot) {
  return nodes[static_cast<std::size_t>(slot.node)].fixed[slot.index];
}

/// Fixes every use of a parameter.
void fix_all(std::vector<Node>& nodes, const Slot& its) {
  each(nodes, parameter_slots, [&](const Slot& slot) {
    if (home(nodes, parameter_slots, slot) == its) nodes[static_cast<std::size_t>(slot.node)].fixed[slot.index] = true;
  });
}

void join(std::vector<Node>& nodes, const Slots& slots, const std::pair<Slot, Slot>& both) {
  if (both.first == both.second) return;
  const bool is_fixed = is_parameter(slots) && (fixed(nodes, both.first) || fixed(nodes, both.second));
  each(nodes, slots, [&](const Slot& slot) {
    if (home(nodes, slots, slot) == both.second)
      (nodes[static_cast<std::size_t>(slot.node)].*slots.of)[slot.index] = both.first;
  });
  if (is_fixed) fix_all(nodes, both.first);
}

}  // namespace

std::vector<Stored> stored(const std::vector<Node>& nodes, const Slots& slots) {
  std::vector<Stored> all;
  std::vector<std::vector<std::size_t>> at(nodes.size());  // indices in `all`
  each(nodes, slots, [&](const Slot& slot) {
    const Slot& its = home(nodes, slots, slot);
    if (its == slot) {
      at[static_cast<std::size_t>(slot.node)].push_back(all.size());
      all.push_back(
          {slot, name_of(nodes, slots, slot), (nodes[static_cast<std::size_t>(slot.node)].*slots.shapes)[slot.index]});
      all.back().fixed = is_parameter(slots) && fixed(nodes, slot);
    } else {
      at[static_cast<std::size_t>(slot.node)].push_back(at[static_cast<std::size_t>(its.node)][its.index]);
      all[at[static_cast<std::size_t>(slot.node)].back()].aliases.push_back(name_of(nodes, slots, slot));
    }
  });
  return all;
}

void share(const std::string& graph, std::vector<Node>& nodes, std::string_view tensor, std::string_view with) {
  std::vector<std::string> known;
  for (const Slots& slots : {parameter_slots, state_slots}) {
    const Slot a = find(nodes, slots, tensor), b = find(nodes, slots, with);
    if (a.node >= 0 && b.node >= 0) return join(nodes, slots, checked(graph, nodes, slots, a, b));
    each(nodes, slots, [&](const Slot& slot) {
      if (sharable(nodes[static_cast<std::size_t>(slot.node)], slots)) known.push_back(name_of(nodes, slots, slot));
    });
  }
  const std::string what = "graph \"" + graph + "\": ";
  for (const std::string_view name : {tensor, with})
    if (std::ranges::find(known, name) == known.end())
      throw UsageError(what + "no parameter or running statistic " + std::string(name) + "; " +
                       near_names(name, known));
  throw UsageError(what + std::string(tensor) + " and " + std::string(with) +
                   " are a parameter and a running statistic; share two of a kind");
}

void fix(const std::string& graph, std::vector<Node>& nodes, std::string_view parameter) {
  const Slot slot = find(nodes, parameter_slots, parameter);
  if (slot.node >= 0) return fix_all(nodes, home(nodes, parameter_slots, slot));
  std::vector<std::string> known;
  each(nodes, parameter_slots, [&](const Slot& its) { known.push_back(name_of(nodes, parameter_slots, its)); });
  throw UsageError("graph \"" + graph + "\" has no parameter " + std::string(parameter) + "; " +
                   near_names(parameter, known));
}

void share_all(const std::string& graph, std::vector<Node>& nodes, int node, int with) {
  const Node &a = nodes[static_cast<std::size_t>(node)], &b = nodes[static_cast<std::size_t>(with)];
  if (a.params.empty() || parameter_names(a.op) != parameter_names(b.op) || a.params.size() != b.params.size() ||
      state_names(a.op) != state_names(b.op))
    throw UsageError("graph \"" + graph + "\": node " + a.name + ", " + to_string(a.op) + ", and node " + b.name +
                     ", " + to_string(b.op) + ", do not have the same parameters to share");
  for (const bool change : {false, true})
    for (const Slots& slots : {parameter_slots, state_slots})
      for (std::size_t k = 0; sharable(a, slots) && k < (a.*slots.shapes).size(); ++k) {
        const auto both = checked(graph, nodes, slots, {node, k}, {with, k});
        if (change) join(nodes, slots, both);
      }
}

}  // namespace lamina::graph
