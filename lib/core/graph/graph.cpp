// Graph: nodes in the order of their creation, found by name, and the parameters and states that they share.

#include "lamina/graph.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <unordered_map>

#include "lamina/error.h"

namespace lamina {

struct Value::Body {
  std::string name;
  std::vector<Node> nodes;
  std::unordered_map<std::string, int> index;
  std::unordered_map<std::string, int> repeats;  // last number "#2", "#3", ... given, by name

  /// Everything that can throw stands before the first change.
  int append(Op op, std::vector<int> inputs, std::string wanted_name) {
    if (wanted_name.empty()) wanted_name = op_name(op);
    Inferred shapes = inferred(op, inputs, wanted_name);
    std::string unique = unique_name(std::move(wanted_name), op, !shapes.params.empty());

    const int id = static_cast<int>(nodes.size());
    std::vector<Slot> params_of(shapes.params.size()), state_of(shapes.state.size());
    std::vector<bool> fixed(shapes.params.size(), false);
    nodes.push_back({unique, std::move(op), std::move(inputs), shapes.y, std::move(shapes.params),
                     std::move(shapes.state), std::move(params_of), std::move(state_of), std::move(fixed)});
    try {
      index.emplace(std::move(unique), id);
    } catch (...) {
      nodes.pop_back();
      throw;
    }
    return id;
  }

 private:
  Inferred inferred(const Op& op, const std::vector<int>& inputs, const std::string& node_name) const {
    std::vector<Shape> x;
    for (const int input : inputs) x.push_back(nodes[static_cast<std::size_t>(input)].shape);
    try {
      return infer(op, x);
    } catch (const ShapeError& error) {
      throw ShapeError("graph \"" + name + "\", node \"" + node_name + "\": " + error.what());
    }
  }

  std::string unique_name(std::string wanted_name, const Op& op, bool has_params) {
    const auto taken = index.find(wanted_name);
    if (taken == index.end()) return wanted_name;
    if (has_params)
      throw UsageError("graph \"" + name + "\" already has a node \"" + wanted_name +
                       "\": " + to_string(nodes[static_cast<std::size_t>(taken->second)].op) + "; give " +
                       to_string(op) + " another name, as parameters are identified by it");
    int& repeat = repeats.emplace(wanted_name, 2).first->second;
    for (;; ++repeat) {
      std::string candidate = wanted_name + '#' + std::to_string(repeat);
      if (!index.contains(candidate)) return candidate;
    }
  }
};

const Shape& Value::shape() const { return body_->nodes[static_cast<std::size_t>(id_)].shape; }

Graph::Graph(std::string name) : body_(std::make_unique<Value::Body>()) { body_->name = std::move(name); }
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Graph Graph::clone() const {
  Graph copy(name());
  *copy.body_ = body();
  return copy;
}

Graph Graph::first(std::size_t count) const {
  Graph copy = clone();
  std::vector<Node>& nodes = copy.body_->nodes;
  for (; nodes.size() > count; nodes.pop_back()) copy.body_->index.erase(nodes.back().name);
  return copy;
}

Value::Body& Graph::body() const {
  if (body_ == nullptr) throw UsageError("this graph was moved from; use the one it was moved to");
  return *body_;
}

const std::string& Graph::name() const { return body().name; }
const std::vector<Node>& Graph::nodes() const { return body().nodes; }

Value Graph::input(Shape shape, std::string name) {
  return {&body(), body().append(Input{shape}, {}, std::move(name))};
}

int Graph::find(std::string_view name) const {
  const auto found = body().index.find(std::string(name));
  return found == body().index.end() ? -1 : found->second;
}

const Node& Graph::node(std::string_view name) const {
  const int id = find(name);
  if (id >= 0) return nodes()[static_cast<std::size_t>(id)];
  std::vector<std::string> names;
  for (const Node& node : nodes()) names.push_back(node.name);
  throw UsageError("graph \"" + body().name + "\" has no node \"" + std::string(name) + "\"; " +
                   near_names(name, names));
}

Value Graph::value(std::string_view node_name) {
  return {&body(), static_cast<int>(&node(node_name) - nodes().data())};
}

namespace {

std::int64_t exact_sum(std::int64_t a, std::int64_t b, const std::string& graph, const char* of_what) {
  if (a > std::numeric_limits<std::int64_t>::max() - b)
    throw ShapeError("graph \"" + graph + "\": more than 2^63 - 1 " + of_what);
  return a + b;
}

/// The parameters of all nodes, or their states. Each use of a shared parameter names the earlier node that has it.
struct Slots {
  std::vector<Node>& nodes;
  bool are_parameters;

  Node& node_of(const Slot& slot) const { return nodes[static_cast<std::size_t>(slot.node)]; }
  const std::vector<Shape>& shapes(const Node& node) const { return are_parameters ? node.params : node.state; }
  const Shape& shape(const Slot& slot) const { return shapes(node_of(slot))[slot.index]; }
  Slot& of(const Slot& slot) const {
    return (are_parameters ? node_of(slot).params_of : node_of(slot).state_of)[slot.index];
  }
  Slot home(const Slot& slot) const { return of(slot).node < 0 ? slot : of(slot); }
  bool is_fixed(const Slot& slot) const { return are_parameters && node_of(slot).fixed[slot.index]; }
  std::string name(const Slot& slot) const {
    const Node& node = node_of(slot);
    return node.name + "." + std::string((are_parameters ? parameter_names : state_names)(node.op)[slot.index]);
  }

  /// Whether the parameters (or states) of a node can be shared. The only states that can be shared are running
  /// statistics of batch norms. A dropout counts its own steps, and other states are constants.
  bool sharable(const Node& node) const { return are_parameters || std::holds_alternative<BatchNorm>(node.op); }

  std::vector<Slot> all() const {
    std::vector<Slot> all;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (std::size_t k = 0; k < shapes(nodes[i]).size(); ++k) all.push_back({static_cast<int>(i), k});
    return all;
  }

  /// The names of the parameters (or states) that can be shared.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Slot& slot : all())
      if (sharable(node_of(slot))) names.push_back(name(slot));
    return names;
  }
  /// The slot that has one of these names, or node -1.
  Slot find(std::string_view wanted) const {
    for (const Slot& slot : all())
      if (sharable(node_of(slot)) && name(slot) == wanted) return slot;
    return {};
  }

  /// All slots that use the same memory as this one.
  std::vector<Slot> uses(const Slot& its) const {
    std::vector<Slot> found = all();
    std::erase_if(found, [&](const Slot& slot) { return home(slot) != its; });
    return found;
  }

  std::vector<Stored> stored() const {
    std::vector<Stored> found;
    std::map<Slot, std::size_t> places;  // index in `found`, by home slot
    for (const Slot& slot : all()) {
      const auto [place, is_first] = places.emplace(home(slot), found.size());
      if (is_first)
        found.push_back({slot, name(slot), shape(slot), {}, is_fixed(slot)});
      else
        found[place->second].aliases.push_back(name(slot));
    }
    return found;
  }

  /// Throws what Graph::share does if two tensors cannot become one.
  void check(const std::string& graph, const Slot& a, const Slot& b) const {
    const std::string what = "graph \"" + graph + "\": " + name(a) + " cannot be shared with " + name(b) + ": ";
    if (shape(a) != shape(b))
      throw ShapeError(what + "it is " + to_string(shape(a)) + ", and not " + to_string(shape(b)));
    if (home(a) == home(b)) return;
    const std::vector<Slot> others = uses(home(b));
    for (const Slot& use : uses(home(a)))
      for (const Slot& other : others)
        if (use.node == other.node) throw UsageError(what + "node " + node_of(use).name + " would use it twice");
  }

  void join(const Slot& a, const Slot& b) const {
    const Slot first = std::min(home(a), home(b)), second = std::max(home(a), home(b));
    if (first == second) return;
    const bool fixes = is_fixed(first) || is_fixed(second);
    for (const Slot& use : uses(second)) of(use) = first;
    if (fixes) fix(first);
  }

  /// Fixes every use of a parameter.
  void fix(const Slot& its) const {
    for (const Slot& use : uses(home(its))) node_of(use).fixed[use.index] = true;
  }
};

}  // namespace

void Graph::share(std::string_view tensor, std::string_view with) {
  std::vector<std::string> known;
  for (const bool of_parameters : {true, false}) {
    const Slots slots{body().nodes, of_parameters};
    const Slot a = slots.find(tensor), b = slots.find(with);
    if (a.node >= 0 && b.node >= 0) {
      slots.check(name(), a, b);
      return slots.join(a, b);
    }
    std::ranges::move(slots.names(), std::back_inserter(known));
  }
  const std::string what = "graph \"" + name() + "\": ";
  for (const std::string_view its : {tensor, with})
    if (std::ranges::find(known, its) == known.end())
      throw UsageError(what + "no parameter or running statistic " + std::string(its) + "; " + near_names(its, known));
  throw UsageError(what + std::string(tensor) + " and " + std::string(with) +
                   " are a parameter and a running statistic; share two of a kind");
}

void Graph::share_all(std::string_view node_name, std::string_view with) {
  const Node &a = node(node_name), &b = node(with);
  if (a.params.empty() || parameter_names(a.op) != parameter_names(b.op) || state_names(a.op) != state_names(b.op))
    throw UsageError("graph \"" + name() + "\": node " + a.name + ", " + to_string(a.op) + ", and node " + b.name +
                     ", " + to_string(b.op) + ", do not have the same parameters to share");
  const int of_a = find(node_name), of_b = find(with);
  for (const bool changes : {false, true})
    for (const bool of_parameters : {true, false}) {
      const Slots slots{body().nodes, of_parameters};
      for (std::size_t k = 0; slots.sharable(a) && k < slots.shapes(a).size(); ++k)
        if (changes)
          slots.join({of_a, k}, {of_b, k});
        else
          slots.check(name(), {of_a, k}, {of_b, k});
    }
}

void Graph::fix(std::string_view parameter) {
  const Slots slots{body().nodes, true};
  if (const Slot its = slots.find(parameter); its.node >= 0) return slots.fix(its);
  throw UsageError("graph \"" + name() + "\" has no parameter " + std::string(parameter) + "; " +
                   near_names(parameter, slots.names()));
}

std::vector<Stored> Graph::parameters() const {
  std::vector<Stored> all = Slots{body().nodes, true}.stored();
  std::erase_if(all, [](const Stored& its) { return its.fixed; });
  return all;
}

std::vector<Stored> Graph::states() const {
  std::vector<Stored> all = Slots{body().nodes, false}.stored();
  for (Stored& its : Slots{body().nodes, true}.stored())
    if (its.fixed) all.push_back(std::move(its));
  return all;
}

std::int64_t Graph::parameter_count() const {
  std::int64_t sum = 0;
  for (const Stored& parameter : parameters()) sum = exact_sum(sum, parameter.shape.count(), name(), "parameters");
  return sum;
}

std::int64_t own_parameters(const Node& node) {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < node.params.size(); ++k)
    sum += node.params_of[k].node < 0 && !node.fixed[k] ? node.params[k].count() : 0;
  return sum;
}

std::int64_t Graph::multiply_adds() const {
  std::int64_t sum = 0;
  for (const Node& node : nodes()) {
    const std::int64_t products = lamina::multiply_adds(node.op, input_shapes(*this, node));
    sum = exact_sum(sum, products, name(), "multiply-adds");
  }
  return sum;
}

Value apply(Op op, const std::vector<Value>& inputs, std::string name) {
  const std::string what = name.empty() ? to_string(op) : '"' + name + "\", " + to_string(op);
  if (inputs.empty()) throw UsageError(what + ": no inputs; the first value of a graph comes from Graph::input");
  Value::Body* body = inputs.front().body_;
  std::vector<int> ids;
  for (const Value& value : inputs) {
    if (value.body_ != body)
      throw UsageError(what + ": an input belongs to graph \"" + value.body_->name + "\", another to \"" + body->name +
                       "\"; values of different graphs cannot be joined");
    ids.push_back(value.id_);
  }
  return {body, body->append(std::move(op), std::move(ids), std::move(name))};
}

std::vector<Shape> input_shapes(const Graph& graph, const Node& node) {
  std::vector<Shape> shapes;
  for (const int input : node.inputs) shapes.push_back(graph.nodes()[static_cast<std::size_t>(input)].shape);
  return shapes;
}

std::vector<std::int64_t> whole_numbers(const Graph& graph) {
  const std::vector<Node>& nodes = graph.nodes();
  std::vector<std::int64_t> numbers(nodes.size(), 0);
  for (std::size_t reader = nodes.size(); reader-- > 0;) {
    const Node& node = nodes[reader];
    const std::vector<Shape> x = input_shapes(graph, node);
    const bool moves = std::holds_alternative<Slice>(node.op) || std::holds_alternative<Concat>(node.op);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int64_t count = moves ? numbers[reader] : whole_numbers(node.op, x, i);
      std::int64_t& least = numbers[static_cast<std::size_t>(node.inputs[i])];
      if (count > 0) least = least == 0 ? count : std::min(least, count);
    }
  }
  return numbers;
}

}  // namespace lamina
