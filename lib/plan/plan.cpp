// A plan: the layout's buffers, and calls bound to them.

#include "lamina/plan.h"

#include <algorithm>
#include <utility>

#include "initial.h"
#include "lamina/error.h"
#include "layout.h"
#include "support/near.h"

namespace lamina {

using planner::Location;
using planner::PlanLayout;
using planner::Room;
using planner::Unit;

namespace {

struct Bound {
  Kernel* kernel;
  Args args;
};

/// The graph as the plan keeps it: a copy, built again node by node.
Graph copy(const Graph& graph) {
  Graph copied(graph.name());
  std::vector<Value> values;
  for (const Node& node : graph.nodes()) {
    if (const auto* input = std::get_if<Input>(&node.op)) {
      values.push_back(copied.input(input->shape, node.name));
      continue;
    }
    std::vector<Value> x;
    for (const int i : node.inputs) x.push_back(values[static_cast<std::size_t>(i)]);
    values.push_back(apply(node.op, x, node.name));
  }
  return copied;
}

bool covers(const Lowered::Step& step, Pass pass) {
  return std::find(step.covers.begin(), step.covers.end(), pass) != step.covers.end();
}

}  // namespace

struct Plan::Body {
  Graph graph;
  Backend* backend;
  Options options;
  PlanLayout layout;
  Buffer parameters, parameter_gradients, state, inputs, arena, prepared, workspace;
  std::vector<Bound> bound;          ///< forward's, then backward's
  std::vector<Bound> prepare_calls;  ///< in inference: run when parameters change
  std::vector<Call> calls;
  std::size_t forward_calls = 0;
  bool ready_for_backward = false;

  Body(const Graph& g, Backend& b, const Options& o)
      : graph(copy(g)), backend(&b), options(o), layout(planner::make_layout(graph, b, o)) {
    if (measures()) measure();
    Device& device = b.device();
    const MemoryReport& memory = layout.memory;
    parameters = Buffer(device, layout.parameter_bytes);
    parameter_gradients = Buffer(device, memory.parameters - layout.parameter_bytes);
    state = Buffer(device, memory.state);
    inputs = Buffer(device, memory.inputs);
    arena = Buffer(device, memory.arena);
    prepared = Buffer(device, memory.prepared);
    workspace = Buffer(device, memory.workspace);
    device.fill(parameter_gradients.data(), 0, parameter_gradients.size_bytes());
    device.fill(arena.data(), 0xff, arena.size_bytes());  // NaN: a read of what was never written shows
    device.fill(inputs.data(), 0xff, inputs.size_bytes());
    bind();
  }

  const std::vector<Node>& nodes() const { return graph.nodes(); }
  const std::vector<Unit>& units() const { return layout.units.list; }
  DType dtype() const { return options.dtype; }

  bool measures() const {
    return std::any_of(units().begin(), units().end(), [](const Unit& unit) { return unit.choice.measure; });
  }

  /// Replaces every choice that asks for measurement by what the backend measured, in memory that nobody uses yet.
  void measure() {
    const std::size_t bytes = layout.memory.arena + layout.memory.workspace;
    Buffer lent(backend->device(), bytes);
    std::vector<std::pair<const Unit*, Choice>> measured;
    for (const Unit& unit : units()) {
      Choice choice = unit.choice;
      const auto same = std::find_if(measured.begin(), measured.end(), [&](const auto& m) {
        return m.first->spec == unit.spec && m.first->choice == unit.choice;
      });
      if (same != measured.end())
        choice = same->second;
      else if (choice.measure)
        choice = backend->measure(unit.spec, choice, lent.data(), bytes);
      measured.emplace_back(&unit, choice);
    }
    std::map<std::string, Choice> choice_of;
    for (const auto& [unit, choice] : measured) {
      choice_of[name(unit->y())] = choice;
      choice_of[name(unit->y())].measure = false;
    }
    Options fixed = options;
    fixed.choice_of = std::move(choice_of);
    layout = planner::make_layout(graph, *backend, fixed);
  }

  const std::string& name(int node) const { return nodes()[static_cast<std::size_t>(node)].name; }

  void* address(const Location& location) const {
    const auto in = [&](const Buffer& buffer) -> void* {
      return static_cast<std::byte*>(buffer.data()) + location.offset_bytes;
    };
    switch (location.room) {
      case Room::none: return nullptr;
      case Room::parameters: return in(parameters);
      case Room::parameter_gradients: return in(parameter_gradients);
      case Room::state: return in(state);
      case Room::inputs: return in(inputs);
      case Room::arena: return in(arena);
      case Room::prepared: return in(prepared);
    }
    return nullptr;
  }

  Tensor dense(const Location& location, const Shape& shape, DType type) const {
    return {address(location), shape, type, options.layout, dense_pitch(shape, options.layout)};
  }
  Tensor placed(const std::vector<Location>& locations, const planner::Places& places, int node) const {
    const auto i = static_cast<std::size_t>(node);
    const Shape& root = nodes()[static_cast<std::size_t>(places.root[i])].shape;
    return {address(locations[i]), nodes()[i].shape, dtype(), options.layout, dense_pitch(root, options.layout)};
  }
  Tensor value(int node) const { return placed(layout.value, layout.aliases.value, node); }
  Tensor gradient(int node) const { return placed(layout.gradient, layout.aliases.gradient, node); }
  /// The value as backward finds it: made again if it was dropped.
  Tensor kept_value(int node) const {
    const auto i = static_cast<std::size_t>(node);
    return layout.lives.dropped(node) ? dense(layout.remade[i], nodes()[i].shape, dtype()) : value(node);
  }

  /// Tensors of unit `u` for one pass.
  Args args(std::size_t u, Pass pass) const {
    const Unit& unit = units()[u];
    const bool backward = pass == Pass::backward_data || pass == Pass::backward_params;
    Args args;
    for (const int x : unit.x) args.x.push_back(pass == Pass::forward ? value(x) : kept_value(x));
    args.y = pass == Pass::forward ? value(unit.y()) : kept_value(unit.y());
    for (const int node : unit.nodes) {
      const auto i = static_cast<std::size_t>(node);
      for (std::size_t k = 0; k < nodes()[i].params.size(); ++k) {
        args.w.push_back(dense(layout.parameter[i][k], nodes()[i].params[k], dtype()));
        if (backward) args.dw.push_back(dense(layout.parameter_gradient[i][k], nodes()[i].params[k], dtype()));
      }
      for (std::size_t k = 0; k < nodes()[i].state.size(); ++k)
        args.state.push_back(dense(layout.state[i][k], nodes()[i].state[k], state_dtype(nodes()[i].op, dtype())));
    }
    if (backward) {
      args.dy = gradient(unit.y());
      for (std::size_t j = 0; j < unit.x.size(); ++j)
        args.dx.push_back(unit.spec.wants_dx[j] && !layout.aliases.dx_shared[u][j] ? gradient(unit.x[j]) : Tensor{});
      args.scratch = address(layout.scratch[u]);
    }
    args.saved = address(layout.saved[u]);
    args.prepared = address(layout.prepared[u]);
    if (pass == Pass::forward) {
      const int producer = layout.units.sums_of[u];
      args.sums = address(layout.sums[producer >= 0 ? static_cast<std::size_t>(producer) : u]);
    }
    args.workspace = workspace.data();
    return args;
  }

  void call(std::size_t u, const Lowered::Step& step, Pass pass) {
    bound.push_back({step.kernel.get(), args(u, pass)});
    calls.push_back({units()[u].nodes, step.covers, step.algorithm});
  }

  void bind() {
    const auto count = static_cast<int>(units().size());
    for (int i = 0; i < count; ++i) bind_forward(i);
    forward_calls = bound.size();
    if (options.mode == Mode::inference) return;
    for (int i = count - 1; i >= 0; --i) bind_backward(i);
  }

  void bind_forward(int i) {
    const auto u = static_cast<std::size_t>(i);
    for (const Lowered::Step& step : units()[u].lowered->steps) {
      if (!covers(step, Pass::prepare)) continue;
      if (options.mode == Mode::inference)
        prepare_calls.push_back({step.kernel.get(), args(u, Pass::prepare)});
      else
        call(u, step, Pass::prepare);
    }
    if (layout.units.forward_is_view(i)) return;
    for (const Lowered::Step& step : units()[u].lowered->steps)
      if (covers(step, Pass::forward)) call(u, step, Pass::forward);
  }

  void bind_backward(int i) {
    const auto u = static_cast<std::size_t>(i);
    bind_remakes(layout.units.backward_step(i));
    if (!units()[u].backward || layout.units.backward_is_view(i)) return;
    const Args bound_args = args(u, Pass::backward_data);
    const bool wants_data =
        std::any_of(bound_args.dx.begin(), bound_args.dx.end(), [](const Tensor& t) { return bool(t); });
    for (const Lowered::Step& step : units()[u].lowered->steps)
      if (covers(step, Pass::backward_params)) call(u, step, Pass::backward_params);
    for (const Lowered::Step& step : units()[u].lowered->steps)
      if (covers(step, Pass::backward_data) && !covers(step, Pass::backward_params) && wants_data)
        call(u, step, Pass::backward_data);
  }

  /// Makes again what was dropped and is needed from this step on.
  void bind_remakes(int when) {
    for (std::size_t u = 0; u < units().size(); ++u) {
      const Unit& unit = units()[u];
      const auto& remade = layout.lives.remade[static_cast<std::size_t>(unit.y())];
      if (remade.writes.empty() || remade.writes[0] != when) continue;
      call(u, *planner::find_step(unit, Pass::recompute), Pass::recompute);
    }
  }

  void run(std::size_t first, std::size_t last, const std::function<void(std::size_t)>* before) {
    for (std::size_t i = first; i < last; ++i) {
      if (before != nullptr) (*before)(i);
      bound[i].kernel->run(bound[i].args);
    }
    if (before != nullptr) (*before)(last);
  }

  void forward(const std::function<void(std::size_t)>* before) {
    run(0, forward_calls, before);
    ready_for_backward = true;
  }

  void backward(const std::function<void(std::size_t)>* before) {
    if (options.mode == Mode::inference)
      throw UsageError("backward() of a plan in inference mode; make it with Mode::training");
    if (!ready_for_backward) throw UsageError("backward() needs a forward() before it, one for each backward()");
    ready_for_backward = false;
    run(forward_calls, bound.size(), before);
  }

  int find(std::string_view node_name) const {
    const int node = graph.find(node_name);
    if (node >= 0) return node;
    std::vector<std::string> names;
    for (const Node& known : nodes()) names.push_back(known.name);
    throw UsageError("graph " + graph.name() + " has no node " + std::string(node_name) + "; " +
                     near_names(node_name, names));
  }

  int find_input(std::string_view input_name) const {
    std::vector<std::string> names;
    int found = -1;
    for (std::size_t i = 0; i < nodes().size(); ++i) {
      if (!std::holds_alternative<Input>(nodes()[i].op)) continue;
      names.push_back(nodes()[i].name);
      if (input_name.empty() || nodes()[i].name == input_name) found = static_cast<int>(i);
    }
    if (found >= 0 && (!input_name.empty() || names.size() == 1)) return found;
    std::string known;
    for (const std::string& known_name : names) known += (known.empty() ? "" : ", ") + known_name;
    throw UsageError("graph " + graph.name() + " has no input " + std::string(input_name) +
                     "; its inputs are: " + known);
  }

  /// The unit that holds a node, or -1 for an input.
  int unit_of(int node) const {
    for (std::size_t u = 0; u < units().size(); ++u)
      if (std::find(units()[u].nodes.begin(), units()[u].nodes.end(), node) != units()[u].nodes.end())
        return static_cast<int>(u);
    return -1;
  }

  std::vector<std::string> unit_names(int node) const {
    const int u = unit_of(node);
    if (u < 0) return {name(node)};
    std::vector<std::string> names;
    for (const int n : units()[static_cast<std::size_t>(u)].nodes) names.push_back(name(n));
    return names;
  }

  int existing(std::string_view node_name) const {
    const int node = find(node_name);
    const int u = unit_of(node);
    if (u < 0 || units()[static_cast<std::size_t>(u)].y() == node) return node;
    std::string chain;
    for (const std::string& n : unit_names(node)) chain += (chain.empty() ? "" : " + ") + n;
    throw UsageError("node " + name(node) + " runs inside the unit " + chain +
                     ", where its value does not exist; ask for " + name(units()[static_cast<std::size_t>(u)].y()) +
                     ", or make the plan with fuse = false");
  }

  /// All parameters, or all state, by name.
  template <class Visit>
  void each_named(bool of_state, Visit&& visit) const {
    for (std::size_t i = 0; i < nodes().size(); ++i) {
      const auto parts = of_state ? lamina::state_names(nodes()[i].op) : lamina::parameter_names(nodes()[i].op);
      const std::size_t count = of_state ? nodes()[i].state.size() : nodes()[i].params.size();
      for (std::size_t k = 0; k < count; ++k) visit(nodes()[i].name + "." + std::string(parts[k]), i, k);
    }
  }

  /// The tensor of a parameter (or state) by name, of the shapes `shapes` and places `locations`.
  Tensor named(std::string_view wanted, bool of_state, const std::vector<std::vector<Location>>& locations) const {
    Tensor found;
    std::vector<std::string> names;
    each_named(of_state, [&](const std::string& full, std::size_t i, std::size_t k) {
      names.push_back(full);
      if (full != wanted) return;
      const Shape& shape = of_state ? nodes()[i].state[k] : nodes()[i].params[k];
      found = dense(locations[i][k], shape, of_state ? state_dtype(nodes()[i].op, dtype()) : dtype());
    });
    if (found) return found;
    throw UsageError("graph " + graph.name() + " has no " + (of_state ? "state " : "parameter ") + std::string(wanted) +
                     near_names(wanted, names));
  }

  std::vector<std::string> names(bool of_state) const {
    std::vector<std::string> all;
    each_named(of_state, [&](const std::string& full, std::size_t, std::size_t) { all.push_back(full); });
    return all;
  }
};

Plan::Plan(const Graph& graph, Backend& backend, const Options& options)
    : body_(std::make_unique<Body>(graph, backend, options)) {
  planner::fill_initial(*this);
  parameters_changed();
}
Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

void Plan::forward() { body_->forward(nullptr); }
void Plan::backward() { body_->backward(nullptr); }
void Plan::forward(const std::function<void(std::size_t)>& before) { body_->forward(&before); }
void Plan::backward(const std::function<void(std::size_t)>& before) { body_->backward(&before); }

Tensor Plan::input(std::string_view name) const { return body_->value(body_->find_input(name)); }
Tensor Plan::input_gradient(std::string_view name) const {
  const int node = body_->find_input(name);
  if (body_->options.mode == Mode::inference || !body_->options.input_gradient)
    throw UsageError("no gradient of input " + body_->name(node) +
                     "; make the plan with Mode::training and input_gradient = true");
  return body_->gradient(node);
}
Tensor Plan::output() const { return body_->value(static_cast<int>(body_->nodes().size()) - 1); }
Tensor Plan::output_gradient() const {
  if (body_->options.mode == Mode::inference)
    throw UsageError("no output gradient in inference mode; make the plan with Mode::training");
  const Tensor dy = body_->gradient(static_cast<int>(body_->nodes().size()) - 1);
  if (!dy)
    throw UsageError("graph " + body_->graph.name() +
                     " has no parameters and no input gradient is asked for: "
                     "its backward pass is empty");
  return dy;
}
Tensor Plan::value(std::string_view node) const { return body_->value(body_->existing(node)); }
Tensor Plan::gradient(std::string_view node) const { return body_->gradient(body_->existing(node)); }
Tensor Plan::parameter(std::string_view name) const { return body_->named(name, false, body_->layout.parameter); }
Tensor Plan::parameter_gradient(std::string_view name) const {
  if (body_->options.mode == Mode::inference)
    throw UsageError("no parameter gradients in inference mode; make the plan with Mode::training");
  return body_->named(name, false, body_->layout.parameter_gradient);
}
Tensor Plan::state(std::string_view name) const { return body_->named(name, true, body_->layout.state); }
std::vector<std::string> Plan::parameter_names() const { return body_->names(false); }
std::vector<std::string> Plan::state_names() const { return body_->names(true); }

void Plan::parameters_changed() {
  for (Bound& call : body_->prepare_calls) call.kernel->run(call.args);
}

const Graph& Plan::graph() const { return body_->graph; }
Backend& Plan::backend() const { return *body_->backend; }
const Options& Plan::options() const { return body_->options; }
const MemoryReport& Plan::memory() const { return body_->layout.memory; }
const std::vector<Call>& Plan::calls() const { return body_->calls; }
std::size_t Plan::forward_calls() const { return body_->forward_calls; }
std::vector<std::string> Plan::unit_of(std::string_view node) const { return body_->unit_names(body_->find(node)); }

}  // namespace lamina
