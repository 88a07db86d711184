// From nodes to units of work.

#include "units.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "choices.h"
#include "lamina/error.h"
#include "lamina/random.h"
#include "support/enumerators.h"
#include "support/near.h"
#include "views.h"

namespace lamina::planner {
namespace {

/// How often each value is read, by nodes.
std::vector<std::vector<int>> node_readers(const std::vector<Node>& nodes) {
  std::vector<std::vector<int>> readers(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const int x : nodes[i].inputs) readers[static_cast<std::size_t>(x)].push_back(static_cast<int>(i));
  return readers;
}

/// Sizes are summed in 64 bits: what passes here is far from overflowing them, and what fails fits no machine.
void check_bytes(const Graph& graph, const Options& options) {
  double elements = 0;
  for (const Node& node : graph.nodes()) {
    elements += static_cast<double>(node.shape.count());
    for (const Shape& w : node.params) elements += static_cast<double>(w.count());
  }
  if (elements * static_cast<double>(size_of(options.dtype)) > 0x1p58)
    throw ShapeError("graph " + graph.name() + ": its values and parameters take more than 2^58 bytes");
}

void check_enumerators(const Options& options) {
  check_enumerator(options.mode, Mode::training, "Options::mode");
  check_enumerator(options.dtype, DType::u64, "Options::dtype");
  check_enumerator(options.layout, Layout::nhwc, "Options::layout");
  check_enumerator(options.keep, Keep::cheap, "Options::keep");
  check_enumerator(options.choice.math, Math::tf32, "Options::choice.math");
  for (const auto& [node, choice] : options.choice_of)
    check_enumerator(choice.math, Math::tf32, "Options::choice_of[\"" + node + "\"].math");
}

void check(const Graph& graph, const Options& options, const std::vector<std::vector<int>>& readers) {
  check_enumerators(options);
  const auto& nodes = graph.nodes();
  if (nodes.empty() || std::holds_alternative<Input>(nodes.back().op))
    throw UsageError("graph " + graph.name() +
                     " computes nothing: its last node must be an op, whose value is the output");
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i)
    if (readers[i].empty())
      throw UsageError("graph " + graph.name() + ": nothing reads node " + nodes[i].name +
                       "; every node but the last, whose value is the output, must be read");
  if (options.mode == Mode::training)
    for (const Node& node : nodes)
      if (std::holds_alternative<BatchNorm>(node.op) && std::int64_t{node.shape.n} * node.shape.plane() < 2)
        throw ShapeError("node " + node.name + ": batch_norm of " + to_string(node.shape) +
                         " has one value per channel, whose variance is unknown; training needs two or more");
  for (const auto& [name, choice] : options.choice_of) {
    if (graph.find(name) >= 0) continue;
    std::vector<std::string> names;
    for (const Node& node : nodes) names.push_back(node.name);
    throw UsageError("choice_of: graph " + graph.name() + " has no node " + name + "; " + near_names(name, names));
  }
}

TensorSpec tensor_spec(const Shape& shape, const Options& options, DType dtype) {
  const std::int64_t pitch = dense_pitch(shape, options.layout);
  return {shape, dtype, options.layout, pitch, pitch};
}

Op with_node_seed(const Node& node) {
  Op op = node.op;
  if (auto* dropout = std::get_if<Dropout>(&op)) dropout->seed ^= hash(node.name);
  return op;
}

void append_parameters(Spec& spec, const Node& node, const Options& options) {
  for (const Shape& w : node.params) spec.w.push_back(tensor_spec(w, options, options.dtype));
  for (const Shape& s : node.state) spec.state.push_back(tensor_spec(s, options, state_dtype(node.op, options.dtype)));
}

/// The chain that starts at node `head`, as far as the backend takes it.
Unit make_unit(int head, const std::vector<Node>& nodes, const std::vector<std::vector<int>>& readers,
               const std::vector<bool>& wanted, const Backend& backend, const Options& options) {
  const auto at = [&](int i) -> const Node& { return nodes[static_cast<std::size_t>(i)]; };
  Unit unit;
  const auto read = [&](int value) {
    unit.x.push_back(value);
    unit.spec.x.push_back(tensor_spec(at(value).shape, options, options.dtype));
    unit.spec.wants_dx.push_back(wanted[static_cast<std::size_t>(value)]);
    unit.spec.adds_dx.push_back(false);
  };
  unit.nodes = {head};
  unit.spec.op = with_node_seed(at(head));
  for (const int x : at(head).inputs) read(x);
  unit.spec.y = tensor_spec(at(head).shape, options, options.dtype);
  unit.spec.mode = options.mode;
  unit.spec.adds_dw = options.accumulate_parameters;
  append_parameters(unit.spec, at(head), options);

  while (options.fuse) {
    const auto& next_readers = readers[static_cast<std::size_t>(unit.y())];
    if (next_readers.size() != 1) break;
    const Node& next = at(next_readers[0]);
    // A join belongs to the chain whose value is made last: the other operands exist by then.
    const auto operand = std::find(next.inputs.begin(), next.inputs.end(), unit.y());
    if (*std::max_element(next.inputs.begin(), next.inputs.end()) != unit.y()) break;
    // Nor does one unit read a value twice through different ops: their gradients would meet inside one kernel.
    const auto known = [&](int x) { return std::find(unit.x.begin(), unit.x.end(), x) != unit.x.end(); };
    if (std::any_of(next.inputs.begin(), next.inputs.end(), known)) break;
    if (!backend.fuses(unit.spec, next, static_cast<int>(operand - next.inputs.begin()))) break;
    for (const int x : next.inputs)
      if (x != unit.y()) read(x);
    unit.nodes.push_back(next_readers[0]);
    unit.spec.tail.push_back(with_node_seed(next));
    unit.spec.y = tensor_spec(next.shape, options, options.dtype);
    append_parameters(unit.spec, next, options);
  }
  unit.backward = wanted[static_cast<std::size_t>(unit.y())];
  return unit;
}

/// Walks backwards: the first writer of each gradient overwrites, the others add.
void set_betas(Units& units) {
  std::vector<bool> written(units.producer.size(), false);
  for (auto unit = units.list.rbegin(); unit != units.list.rend(); ++unit) {
    for (std::size_t j = 0; j < unit->x.size(); ++j) {
      if (!unit->spec.wants_dx[j]) continue;
      const auto x = static_cast<std::size_t>(unit->x[j]);
      unit->spec.adds_dx[j] = written[x];
      written[x] = true;
    }
  }
}

void set_pitches(Units& units, const std::vector<Node>& nodes, const Options& options) {
  const auto pitch = [&](const std::vector<View>& views, int value) {
    while (views[static_cast<std::size_t>(value)].parent >= 0) value = views[static_cast<std::size_t>(value)].parent;
    return dense_pitch(nodes[static_cast<std::size_t>(value)].shape, options.layout);
  };
  const auto set = [&](TensorSpec& spec, int value) {
    spec.pitch = pitch(units.value_view, value);
    spec.gradient_pitch = pitch(units.gradient_view, value);
  };
  for (Unit& unit : units.list) {
    for (std::size_t j = 0; j < unit.x.size(); ++j) set(unit.spec.x[j], unit.x[j]);
    set(unit.spec.y, unit.y());
  }
}

void lower_all(Units& units, const std::vector<Node>& nodes, Backend& backend) {
  std::unordered_map<std::string, std::vector<const Unit*>> distinct;  // by the text of their specs
  for (Unit& unit : units.list) {
    std::vector<const Unit*>& alike = distinct[to_string(unit.spec)];
    const auto same =
        std::find_if(alike.begin(), alike.end(), [&](const Unit* other) { return other->choice == unit.choice; });
    if (same != alike.end()) {
      unit.lowered = (*same)->lowered;
      continue;
    }
    Choice by_rule = unit.choice;
    by_rule.measure = false;  // measured choices have names by now, or are still to come
    const auto at_node = [&](const Error& error) {
      return "node " + nodes[static_cast<std::size_t>(unit.nodes[0])].name + ": " + error.what();
    };
    try {
      unit.lowered = std::make_shared<const Lowered>(backend.lower(unit.spec, by_rule));
    } catch (const Unsupported& error) {
      throw Unsupported(at_node(error));
    } catch (const UsageError& error) {
      throw UsageError(at_node(error));
    }
    alike.push_back(&unit);
  }
}

}  // namespace

bool Units::forward_is_view(int unit) const {
  const Unit& u = list[static_cast<std::size_t>(unit)];
  if (std::holds_alternative<Slice>(u.spec.op)) return value_view[static_cast<std::size_t>(u.y())].parent == u.x[0];
  if (!std::holds_alternative<Concat>(u.spec.op)) return false;
  return value_view[static_cast<std::size_t>(u.x[0])].parent == u.y();
}

bool Units::backward_is_view(int unit) const {
  const Unit& u = list[static_cast<std::size_t>(unit)];
  if (!std::holds_alternative<Concat>(u.spec.op)) return false;
  return gradient_view[static_cast<std::size_t>(u.x[0])].parent == u.y();
}

Units find_units(const Graph& graph, const Backend& backend, const Options& options) {
  const auto& nodes = graph.nodes();
  const auto readers = node_readers(nodes);
  check(graph, options, readers);
  check_bytes(graph, options);

  Units units;
  units.wanted = wanted_gradients(graph, options);
  std::vector<bool> taken(nodes.size(), false);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (taken[i] || std::holds_alternative<Input>(nodes[i].op)) continue;
    units.list.push_back(make_unit(static_cast<int>(i), nodes, readers, units.wanted, backend, options));
    for (const int node : units.list.back().nodes) taken[static_cast<std::size_t>(node)] = true;
  }
  // A unit runs where its last node stands, so that everything its tail reads is there.
  std::sort(units.list.begin(), units.list.end(), [](const Unit& a, const Unit& b) { return a.y() < b.y(); });

  units.producer.assign(nodes.size(), -1);
  units.readers.resize(nodes.size());
  for (std::size_t i = 0; i < units.list.size(); ++i) {
    units.producer[static_cast<std::size_t>(units.list[i].y())] = static_cast<int>(i);
    for (const int x : units.list[i].x) units.readers[static_cast<std::size_t>(x)].push_back(static_cast<int>(i));
  }
  set_betas(units);
  set_views(units, nodes, backend, options);
  set_pitches(units, nodes, options);
  set_choices(units, nodes, backend, options);
  return units;
}

Units make_units(const Graph& graph, Backend& backend, const Options& options) {
  Units units = find_units(graph, backend, options);
  lower_all(units, graph.nodes(), backend);
  return units;
}

}  // namespace lamina::planner

namespace lamina {

std::vector<bool> wanted_gradients(const Graph& graph, const Options& options) {
  const std::vector<Node>& nodes = graph.nodes();
  std::vector<bool> wanted(nodes.size(), false);
  if (options.mode == Mode::inference) return wanted;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    wanted[i] = std::holds_alternative<Input>(nodes[i].op) ? options.input_gradient : !nodes[i].params.empty();
    for (const int x : nodes[i].inputs) wanted[i] = wanted[i] || wanted[static_cast<std::size_t>(x)];
  }
  return wanted;
}

std::vector<PlannedUnit> planned_units(const Graph& graph, const Backend& backend, const Options& options) {
  std::vector<PlannedUnit> planned;
  for (planner::Unit& unit : planner::find_units(graph, backend, options).list)
    planned.push_back({std::move(unit.nodes), std::move(unit.spec)});
  return planned;
}

}  // namespace lamina
