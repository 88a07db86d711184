// A plan: the layout's buffers, and calls bound to them.

#include "lamina/plan.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "bind.h"
#include "initial.h"
#include "lamina/error.h"
#include "layout.h"
#include "memory.h"
#include "support/busy_guard.h"
#include "support/near.h"

namespace lamina {

using planner::PlanLayout;
using planner::Unit;

namespace {

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

/// Bytes that one unit needs to be measured by itself: its tensors, and its blocks but for the workspace.
std::size_t measured_bytes(const Unit& unit) {
  const auto block = [](std::size_t bytes) { return (bytes + 255) & ~std::size_t{255}; };
  const auto tensor = [&](const TensorSpec& spec, std::int64_t pitch) {
    const std::int64_t steps = spec.layout == Layout::nchw ? spec.shape.n : spec.shape.n * spec.shape.plane();
    return block(static_cast<std::size_t>(steps * pitch) * size_of(spec.dtype));
  };
  std::size_t bytes =
      block(unit.lowered->saved_bytes) + block(unit.lowered->backward_bytes) + block(unit.lowered->prepared_bytes);
  std::vector<TensorSpec> tensors = unit.spec.x;
  tensors.insert(tensors.end(), unit.spec.w.begin(), unit.spec.w.end());
  tensors.push_back(unit.spec.y);
  for (const TensorSpec& spec : tensors) bytes += tensor(spec, spec.pitch) + tensor(spec, spec.gradient_pitch);
  return bytes;
}

/// Memory to measure in: what the plan will take, or more where a unit with as much workspace as its choice allows
/// needs more; without so much workspace where there is not enough memory.
Buffer lent_memory(Device& device, const PlanLayout& layout) {
  const std::size_t plan = layout.memory.arena + layout.memory.workspace;
  std::size_t least = plan, most = plan;
  for (const Unit& unit : layout.units.list) {
    if (!unit.choice.measure) continue;
    least = std::max(least, measured_bytes(unit) + layout.memory.workspace);
    most = std::max(most, measured_bytes(unit) + unit.choice.workspace_limit);
  }
  try {
    return {device, std::max(least, most)};
  } catch (const OutOfMemory&) {
    return {device, least};
  }
}

/// The layout with every choice that asks for measurement replaced by what the backend measures, in memory that nobody
/// uses yet.
PlanLayout measured_layout(const Graph& graph, Backend& backend, Options options) {
  PlanLayout layout = planner::make_layout(graph, backend, options);
  const auto& units = layout.units.list;
  if (std::none_of(units.begin(), units.end(), [](const Unit& unit) { return unit.choice.measure; })) return layout;

  const Buffer lent = lent_memory(backend.device(), layout);
  std::vector<std::pair<const Unit*, MeasuredChoice>> measured;
  std::vector<decltype(MeasuredChoice::tied)> tied;
  options.choice_of.clear();
  for (const Unit& unit : units) {
    const auto same = std::find_if(measured.begin(), measured.end(), [&](const auto& m) {
      return m.first->spec == unit.spec && m.first->choice == unit.choice;
    });
    MeasuredChoice taken{unit.choice};
    if (same != measured.end())
      taken = same->second;
    else if (unit.choice.measure)
      taken = backend.measure(unit.spec, unit.choice, lent.data(), lent.size_bytes());
    measured.emplace_back(&unit, taken);
    tied.push_back(taken.tied);
    taken.choice.measure = false;
    options.choice_of[graph.nodes()[static_cast<std::size_t>(unit.y())].name] = taken.choice;
  }
  PlanLayout settled = planner::make_layout(graph, backend, options);  // of the same units: choices change no spec
  settled.tied = std::move(tied);
  return settled;
}

}  // namespace

struct Plan::Body {
  /// All parameters, or all state: node and number of each.
  struct Named {
    std::vector<std::string> names;  // in order of the graph
    std::unordered_map<std::string, std::pair<int, std::size_t>> places;

    void add(const Node& node, int number, const std::vector<std::string_view>& parts, std::size_t count) {
      for (std::size_t k = 0; k < count; ++k) {
        names.push_back(node.name + "." + std::string(parts[k]));
        places[names.back()] = {number, k};
      }
    }
  };

  std::shared_ptr<Backend> shared;  // first, so that the backend goes last; null where no shared_ptr owns it
  Graph graph;
  Backend* backend;
  Options options;
  PlanLayout layout;
  planner::Memory memory;
  planner::Calls calls;
  Named parameters, state;
  bool ready_for_backward = false;
  std::atomic<bool> running{false};

  Body(const Graph& g, Backend& b, const Options& o)
      : shared(b.weak_from_this().lock()),
        graph(copy(g)),
        backend(&b),
        options(o),
        layout(measured_layout(graph, b, o)),
        memory(b.device(), layout, graph.nodes(), o),
        calls(planner::bind(layout, memory, graph.nodes(), o.mode)) {
    for (int i = 0; i < static_cast<int>(nodes().size()); ++i) {
      const Node& node = nodes()[static_cast<std::size_t>(i)];
      parameters.add(node, i, lamina::parameter_names(node.op), node.params.size());
      state.add(node, i, lamina::state_names(node.op), node.state.size());
    }
  }

  const std::vector<Node>& nodes() const { return graph.nodes(); }
  const std::vector<Unit>& units() const { return layout.units.list; }
  const std::string& name(int node) const { return nodes()[static_cast<std::size_t>(node)].name; }
  int output() const { return static_cast<int>(nodes().size()) - 1; }

  BusyGuard turn() { return {running, "another runs this plan; let its pass end first, or make a plan for each"}; }

  void run(std::size_t first, std::size_t last, const std::function<void(std::size_t)>* before) {
    for (std::size_t i = first; i < last; ++i) {
      if (before != nullptr) (*before)(i);
      calls.bound[i].kernel->run(calls.bound[i].args);
    }
    if (before != nullptr) (*before)(last);
  }

  void forward(const std::function<void(std::size_t)>* before) {
    const BusyGuard mine = turn();
    ready_for_backward = false;  // and stays so if a call throws
    run(0, calls.forward, before);
    ready_for_backward = true;
  }

  void backward(const std::function<void(std::size_t)>* before) {
    if (options.mode == Mode::inference)
      throw UsageError("backward() of a plan in inference mode; make it with Mode::training");
    const BusyGuard mine = turn();
    if (!ready_for_backward) throw UsageError("backward() needs a forward() before it, one for each backward()");
    ready_for_backward = false;
    run(calls.forward, calls.bound.size(), before);
  }

  /// Throws UsageError with near names, as Graph::node does.
  int find(std::string_view node_name) const { return static_cast<int>(&graph.node(node_name) - nodes().data()); }

  int find_input(std::string_view input_name) const {
    std::vector<std::string> names;
    int found = -1;
    for (std::size_t i = 0; i < nodes().size(); ++i) {
      if (!std::holds_alternative<Input>(nodes()[i].op)) continue;
      names.push_back(nodes()[i].name);
      if (input_name.empty() || nodes()[i].name == input_name) found = static_cast<int>(i);
    }
    if (found >= 0 && (!input_name.empty() || names.size() == 1)) return found;
    if (!input_name.empty())
      throw UsageError("graph " + graph.name() + " has no input " + std::string(input_name) + "; " +
                       near_names(input_name, names));
    std::string known;
    for (const std::string& known_name : names) known += (known.empty() ? "" : ", ") + known_name;
    throw UsageError("graph " + graph.name() + " has " + std::to_string(names.size()) +
                     " inputs; say which is meant: " + known);
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

  /// Node and number of a parameter (or state) by its full name.
  std::pair<int, std::size_t> find_named(std::string_view wanted, bool of_state) const {
    const Named& all = of_state ? state : parameters;
    const auto found = all.places.find(std::string(wanted));
    if (found != all.places.end()) return found->second;
    throw UsageError("graph " + graph.name() + " has no " + (of_state ? "state " : "parameter ") + std::string(wanted) +
                     "; " + near_names(wanted, all.names));
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

Plan::Body& Plan::body() const {
  if (body_ == nullptr) throw UsageError("this plan was moved from; use the one it was moved to");
  return *body_;
}

void Plan::forward() { body().forward(nullptr); }
void Plan::backward() { body().backward(nullptr); }
void Plan::forward(const std::function<void(std::size_t)>& before) { body().forward(&before); }
void Plan::backward(const std::function<void(std::size_t)>& before) { body().backward(&before); }

Tensor Plan::input(std::string_view name) const { return body().memory.value(body().find_input(name)); }

Tensor Plan::input_gradient(std::string_view name) const {
  const int node = body().find_input(name);
  if (body().options.mode == Mode::inference || !body().options.input_gradient)
    throw UsageError("no gradient of input " + body().name(node) +
                     "; make the plan with Mode::training and input_gradient = true");
  return body().memory.gradient(node);
}

Tensor Plan::output() const { return body().memory.value(body().output()); }

Tensor Plan::output_gradient() const {
  if (body().options.mode == Mode::inference)
    throw UsageError("no output gradient in inference mode; make the plan with Mode::training");
  const Tensor dy = body().memory.gradient(body().output());
  if (dy) return dy;
  throw UsageError("graph " + body().graph.name() +
                   " has no parameters and no input gradient is asked for: its backward pass is empty");
}

Tensor Plan::value(std::string_view node) const { return body().memory.value(body().existing(node)); }
Tensor Plan::gradient(std::string_view node) const { return body().memory.gradient(body().existing(node)); }

Tensor Plan::parameter(std::string_view name) const {
  const auto [node, k] = body().find_named(name, false);
  return body().memory.parameter(node, k);
}

Tensor Plan::parameter_gradient(std::string_view name) const {
  if (body().options.mode == Mode::inference)
    throw UsageError("no parameter gradients in inference mode; make the plan with Mode::training");
  const auto [node, k] = body().find_named(name, false);
  return body().memory.parameter_gradient(node, k);
}

Tensor Plan::state(std::string_view name) const {
  const auto [node, k] = body().find_named(name, true);
  return body().memory.state(node, k);
}

std::vector<std::string> Plan::parameter_names() const { return body().parameters.names; }
std::vector<std::string> Plan::state_names() const { return body().state.names; }

void Plan::parameters_changed() {
  const BusyGuard mine = body().turn();
  for (const auto& call : body().calls.prepare) call.kernel->run(call.args);
}

const Graph& Plan::graph() const { return body().graph; }
Backend& Plan::backend() const { return *body().backend; }
const Options& Plan::options() const { return body().options; }
const MemoryReport& Plan::memory() const { return body().layout.memory; }
const std::vector<Call>& Plan::calls() const { return body().calls.described; }
std::size_t Plan::forward_calls() const { return body().calls.forward; }
std::vector<std::string> Plan::unit_of(std::string_view node) const { return body().unit_names(body().find(node)); }

}  // namespace lamina
