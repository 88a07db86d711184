// What must hold of a graph and of options before anything is planned.

#include <string>
#include <vector>

#include "decisions.h"
#include "lamina/error.h"
#include "support/enumerators.h"
#include "support/near.h"
#include "support/shortest.h"

namespace lamina::planner {
namespace {

void check_choice(const Choice& choice, const std::string& whose) {
  check_enumerator(choice.math, Math::tf32, whose + ".math");
  // No bound at all: nothing could hold it, and a NaN everything.
  if (!(choice.max_error >= 0))
    throw UsageError(whose + ".max_error is " + shortest(choice.max_error) + "; give a bound from 0 on, or no_bound");
}

void check_options(const Nodes& nodes, const Options& options) {
  check_enumerator(options.mode, Mode::training, "Options::mode");
  check_enumerator(options.dtype, DType::u64, "Options::dtype");
  check_enumerator(options.layout, Layout::nhwc, "Options::layout");
  check_enumerator(options.keep, Keep::cheap, "Options::keep");
  check_choice(options.choice, "Options::choice");
  for (const auto& [name, choice] : options.choice_of) {
    check_choice(choice, "Options::choice_of[\"" + name + "\"]");
    if (nodes.graph().find(name) >= 0) continue;
    std::vector<std::string> names;
    for (const NodeId node : nodes.ids()) names.push_back(nodes[node].name);
    throw UsageError("choice_of: graph " + nodes.graph().name() + " has no node " + name + "; " +
                     near_names(name, names));
  }
}

void check_readers(const Nodes& nodes) {
  EachNode<bool> read(nodes.size(), false);
  for (const NodeId node : nodes.ids())
    for (const NodeId x : nodes.inputs(node)) read[x] = true;
  for (const NodeId node : nodes.ids())
    if (!read[node] && node != nodes.output())
      throw UsageError("graph " + nodes.graph().name() + ": nothing reads node " + nodes[node].name +
                       "; every node but the last, whose value is the output, must be read");
}

/// Parameters that matter for labels or ids alone would never get a gradient.
void check_gradients_exist(const Nodes& nodes) {
  const EachNode<bool> reached = reached_by_gradients(nodes);
  for (const NodeId node : nodes.ids())
    if (!reached[node] && !nodes[node].params.empty())
      throw UsageError("graph " + nodes.graph().name() + ": the value of node " + nodes[node].name +
                       " is read as labels or ids alone, which have no gradient, so its parameters cannot be trained");
}

/// Sizes are summed in 64 bits: what passes here is far from overflowing them, and what fails fits no machine.
void check_bytes(const Nodes& nodes, const Options& options) {
  double elements = 0;
  for (const NodeId node : nodes.ids()) {
    elements += static_cast<double>(nodes[node].shape.count());
    for (const Shape& w : nodes[node].params) elements += static_cast<double>(w.count());
  }
  if (elements * static_cast<double>(size_of(options.dtype)) > 0x1p58)
    throw ShapeError("graph " + nodes.graph().name() + ": its values and parameters take more than 2^58 bytes");
}

}  // namespace

void check(const Nodes& nodes, const Options& options) {
  if (nodes.size() == 0 || nodes.is_input(nodes.output()))
    throw UsageError("graph " + nodes.graph().name() +
                     " computes nothing: its last node must be an op, whose value is the output");
  check_readers(nodes);
  check_options(nodes, options);
  if (options.mode == Mode::training) {
    check_gradients_exist(nodes);
    for (const NodeId id : nodes.ids())
      if (const Node& node = nodes[id];
          std::holds_alternative<BatchNorm>(node.op) && std::int64_t{node.shape.n} * node.shape.plane() < 2)
        throw ShapeError("node " + node.name + ": batch_norm of " + to_string(node.shape) +
                         " has one value per channel, whose variance is unknown; training needs two or more");
  }
  check_bytes(nodes, options);
}

}  // namespace lamina::planner
