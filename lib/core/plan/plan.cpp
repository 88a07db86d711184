// A plan: the layout's buffers, and calls bound to them.

#include "lamina/plan.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "lamina/error.h"
#include "lib/core/plan/decisions/layout.h"
#include "lib/core/plan/run/bind.h"
#include "lib/core/plan/run/initial.h"
#include "lib/core/plan/run/memory.h"
#include "lib/core/system/busy_guard.h"
#include "lib/core/text/shortest.h"

namespace lamina {

using planner::EachUnit;
using planner::NodeId;
using planner::Nodes;
using planner::none;
using planner::PlanLayout;
using planner::Unit;
using planner::UnitId;

struct Plan::Body {
  /// All parameters, or all states, by name: the node and the number within it.
  struct Named {
    std::vector<std::string> names;  // names in order of the graph
    // The places by name, aliases included. A node's fixed parameters are counted after its state.
    std::unordered_map<std::string, std::pair<NodeId, std::size_t>> places;

    Named(std::vector<Stored> all, const Nodes& nodes) {
      for (Stored& one : all) {
        const NodeId node{one.first.node};
        const std::size_t index = one.first.index + (one.fixed ? nodes[node].state.size() : 0);
        names.push_back(one.name);
        one.aliases.push_back(std::move(one.name));
        for (std::string& name : one.aliases) places[std::move(name)] = {node, index};
      }
    }
  };

  std::shared_ptr<Backend> backend_owner;  // first, so that the backend is destroyed last; null: it is not shared
  Graph graph;
  Nodes nodes;
  Backend* backend;
  Options options;
  PlanLayout layout;
  planner::Memory memory;
  planner::Calls calls;
  Named parameters, state;
  std::vector<UpdateTensors> update_rows;    // rows of numbers that an update changes
  std::vector<std::string> optimiser_names;  // names of the optimiser's state, by parameter
  bool ready_for_backward = false, has_gradients = false;
  std::uint64_t updates = 0;
  std::atomic<bool> running{false};

  Body(const Graph& g, Backend& b, const Options& o)
      : backend_owner(b.weak_from_this().lock()),
        graph(g.clone()),
        nodes(graph),
        backend(&b),
        options(o),
        layout(planner::measured(planner::make_layout(graph, b, o), graph, b, o)),
        memory(b.device(), layout, nodes, o, o.share != nullptr ? &o.share->body().memory : nullptr),
        calls(planner::bind(layout, memory, nodes, o.mode)),
        parameters(graph.parameters(), nodes),
        state(graph.states(), nodes) {
    for (const std::string& name : parameters.names)
      for (const std::string_view part : optimiser_parts()) optimiser_names.push_back(name + "." + std::string(part));
    if (o.optimiser) update_rows = memory.update_rows(o.table_updates);
    options.share = nullptr;  // the other plan need not outlive this plan
  }

  const EachUnit<Unit>& units() const { return layout.units.list; }

  std::vector<std::string_view> optimiser_parts() const {
    return options.optimiser ? lamina::state_names(*options.optimiser) : std::vector<std::string_view>{};
  }

  BusyGuard turn() {
    return {running, "another thread runs this plan; wait until its pass ends, or make a plan for each thread"};
  }

  /// Refuses a pass that needs sums over the ranks but has no function for them: its batch norms would be wrong.
  void check_sums(std::size_t first, std::size_t last, const std::function<void(std::size_t)>* before) const {
    for (std::size_t i = first; before == nullptr && i < last; ++i)
      if (calls.described[i].cross_rank_sums > 0)
        throw UsageError("Options::sync_batch_norm_ranks: node " +
                         nodes[NodeId{calls.described[i].nodes.front()}].name +
                         " needs sums over the ranks; give forward() and backward() a function that adds them up "
                         "(StepProperties::cross_rank_sums)");
  }

  void run(std::size_t first, std::size_t last, const std::function<void(std::size_t)>* before) {
    for (std::size_t i = first; i < last; ++i) {
      if (before != nullptr) (*before)(i);
      calls.bound[i].kernel->run(calls.bound[i].args);
    }
    if (before != nullptr) (*before)(last);
  }

  void forward(const std::function<void(std::size_t)>* before) {
    const BusyGuard mine = turn();
    check_sums(0, calls.forward, before);
    ready_for_backward = false;  // stays false if a call throws
    run(0, calls.forward, before);
    ready_for_backward = true;
  }

  void backward(const std::function<void(std::size_t)>* before) {
    if (options.mode == Mode::inference)
      throw UsageError("backward() of a plan in inference mode; make it with Mode::training");
    const BusyGuard mine = turn();
    if (!ready_for_backward) throw UsageError("backward() needs a forward() before it, one for each backward()");
    check_sums(calls.forward, calls.bound.size(), before);
    ready_for_backward = false;
    for (const Slot& slot : layout.units.cleared) {
      const Tensor dw = memory.parameter_gradient(NodeId{slot.node}, slot.index);
      backend->device().fill(dw.data, 0, static_cast<std::size_t>(dw.shape.count()) * size_of(dw.dtype));
    }
    run(calls.forward, calls.bound.size(), before);
    has_gradients = true;
  }

  void update(double learning_rate, double gradient_scale) {
    if (!options.optimiser) throw UsageError("update() of a plan without Options::optimiser");
    if (!(learning_rate >= 0) || !std::isfinite(learning_rate) || !std::isfinite(gradient_scale))
      throw UsageError("update(" + shortest(learning_rate) + ", " + shortest(gradient_scale) +
                       "): the rate should be at least 0, and both finite");
    const BusyGuard mine = turn();
    if (!has_gradients) throw UsageError("update() needs a backward() before it, at least one for each update()");
    has_gradients = false;
    UpdateFactors factors = planner::update_factors(*options.optimiser, learning_rate);
    if (const UpdateTensors& all = memory.all_parameters(); all.loss_scale != nullptr)
      backend->check_overflow(all);
    else
      factors = corrected(factors, updates + 1);
    factors.gradient_scale = gradient_scale;
    factors.clip_norm = options.clip_norm;
    factors.clears_gradient = options.accumulate_parameters;
    for (const UpdateTensors& row : update_rows) backend->update({factors, row});
    ++updates;
  }

  LossScale* loss_scale() const {
    if (options.loss_scale > 0) return memory.all_parameters().loss_scale;
    throw UsageError("this plan has no loss scaling; make it with Options::loss_scale");
  }

  /// The node of that name. Throws UsageError with near names, as Graph::node does.
  NodeId find(std::string_view node_name) const {
    return NodeId{static_cast<int>(&graph.node(node_name) - graph.nodes().data())};
  }

  NodeId find_input(std::string_view input_name) const {
    std::vector<std::string> names;
    NodeId found = none<NodeId>;
    for (const NodeId id : nodes.ids()) {
      if (!nodes.is_input(id)) continue;
      names.push_back(nodes[id].name);
      if (input_name.empty() || nodes[id].name == input_name) found = id;
    }
    if (found != none<NodeId> && (!input_name.empty() || names.size() == 1)) return found;
    if (!input_name.empty())
      throw UsageError("graph " + graph.name() + " has no input " + std::string(input_name) + "; " +
                       near_names(input_name, names));
    std::string known;
    for (const std::string& known_name : names) known += (known.empty() ? "" : ", ") + known_name;
    throw UsageError("graph " + graph.name() + " has " + std::to_string(names.size()) +
                     " inputs; name one of them: " + known);
  }

  /// The unit that holds a node; none for an input.
  UnitId unit_of(NodeId node) const {
    for (const UnitId unit : units().ids())
      if (std::ranges::find(units()[unit].nodes, node) != units()[unit].nodes.end()) return unit;
    return none<UnitId>;
  }

  std::vector<std::string> unit_names(NodeId node) const {
    const UnitId unit = unit_of(node);
    if (unit == none<UnitId>) return {nodes[node].name};
    std::vector<std::string> names;
    for (const NodeId member : units()[unit].nodes) names.push_back(nodes[member].name);
    return names;
  }

  /// A node whose value is stored.
  NodeId existing(std::string_view node_name) const {
    const NodeId node = find(node_name);
    const UnitId unit = unit_of(node);
    if (unit == none<UnitId> || units()[unit].y() == node) return node;
    std::string chain;
    for (const std::string& n : unit_names(node)) chain += (chain.empty() ? "" : " + ") + n;
    throw UsageError("node " + nodes[node].name + " runs inside the unit " + chain +
                     ", where its value does not exist; ask for " + nodes[units()[unit].y()].name +
                     ", or make the plan with fuse = false");
  }

  /// Node and number of a parameter (or state) by its full name.
  std::pair<NodeId, std::size_t> find_named(std::string_view wanted, bool of_state) const {
    const Named& all = of_state ? state : parameters;
    const auto found = all.places.find(std::string(wanted));
    if (found != all.places.end()) return found->second;
    throw UsageError("graph " + graph.name() + " has no " + (of_state ? "state " : "parameter ") + std::string(wanted) +
                     "; " + near_names(wanted, all.names));
  }
};

Plan::Plan(const Graph& graph, Backend& backend, const Options& options)
    : body_(std::make_unique<Body>(graph, backend, options)) {
  draw_inputs(*this, options.seed);
  if (options.share == nullptr) planner::fill_stored(*this);  // the parameters are its own
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
void Plan::update(double learning_rate, double gradient_scale) { body().update(learning_rate, gradient_scale); }
std::uint64_t Plan::updates() const { return body().updates; }
void Plan::set_updates(std::uint64_t now) { body().updates = now; }

void Plan::scale_loss(double share) {
  Device& device = body().backend->device();
  void* const to = output_gradient().data;
  float pair[] = {1, 0};                                                     // the gradients of loss and accuracy
  if (share == 1) return device.copy(to, body().loss_scale(), sizeof pair);  // LossScale begins with this pair
  pair[0] = static_cast<float>(share * loss_scale().scale);
  device.upload(to, pair, sizeof pair);
}

LossScale Plan::loss_scale() const {
  LossScale now;
  body().backend->device().download(&now, body().loss_scale(), sizeof now);
  return now;
}

void Plan::set_loss_scale(const LossScale& now) {
  body().backend->device().upload(body().loss_scale(), &now, sizeof now);
}

void Plan::forward(const std::function<void(std::size_t)>& before) { body().forward(&before); }
void Plan::backward(const std::function<void(std::size_t)>& before) { body().backward(&before); }

Tensor Plan::input(std::string_view name) const { return body().memory.value(body().find_input(name)); }

Tensor Plan::input_gradient(std::string_view name) const {
  const NodeId node = body().find_input(name);
  if (body().options.mode == Mode::inference || !body().options.input_gradient)
    throw UsageError("no gradient of input " + body().nodes[node].name +
                     "; make the plan with Mode::training and input_gradient = true");
  if (!body().layout.units.wanted[node])
    throw UsageError("input " + body().nodes[node].name + " is read as labels or ids, which have no gradient");
  return body().memory.gradient(node);
}

Tensor Plan::output() const { return body().memory.value(body().nodes.output()); }

Tensor Plan::output_gradient() const {
  if (body().options.mode == Mode::inference)
    throw UsageError("no output gradient in inference mode; make the plan with Mode::training");
  const Tensor dy = body().memory.gradient(body().nodes.output());
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

Tensor Plan::optimiser_state(std::string_view name) const {
  const auto dot = name.rfind('.');
  const auto parts = body().optimiser_parts();
  const auto part = std::ranges::find(parts, dot == name.npos ? name : name.substr(dot + 1));
  if (part == parts.end() || dot == name.npos || !body().parameters.places.contains(std::string(name.substr(0, dot))))
    throw UsageError("graph " + body().graph.name() + " has no optimiser's state " + std::string(name) + "; " +
                     near_names(name, body().optimiser_names));
  const auto [node, k] = body().find_named(name.substr(0, dot), false);
  return body().memory.optimiser_state(node, k, static_cast<std::size_t>(part - parts.begin()));
}

std::vector<std::string> Plan::optimiser_state_names() const { return body().optimiser_names; }
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
const Args& Plan::args(std::size_t call) const {
  const auto& bound = body().calls.bound;
  if (call >= bound.size())
    throw UsageError("no call " + std::to_string(call) + "; the plan has " + std::to_string(bound.size()));
  return bound[call].args;
}
std::vector<std::string> Plan::unit_of(std::string_view node) const { return body().unit_names(body().find(node)); }

}  // namespace lamina
