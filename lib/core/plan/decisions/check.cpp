// Checks of the graph and the options before planning.

#include <limits>
#include <string>
#include <vector>

#include "decisions.h"
#include "lamina/error.h"
#include "lib/core/text/enumerators.h"
#include "lib/core/text/shortest.h"

namespace lamina::planner {
namespace {

void check_choice(const Choice& choice, const std::string& whose) {
  check_enumerator(choice.math, Math::tf32, whose + ".math");
  // A negative bound refuses every algorithm; a NaN accepts every algorithm.
  if (!(choice.max_error >= 0))
    throw UsageError(whose + ".max_error is " + shortest(choice.max_error) + "; give a bound from 0 on, or no_bound");
}

void check_training(const Options& options) {
  if (options.optimiser) {
    check_optimiser(*options.optimiser);
    if (options.mode == Mode::inference)
      throw UsageError(
          "Options::optimiser: a plan in inference mode has no gradients; use Mode::training, or no optimiser");
  }
  if (!(options.clip_norm >= 0))
    throw UsageError("Options::clip_norm is " + shortest(options.clip_norm) + "; give a norm above 0, or 0 for none");
  if (options.sync_batch_norm_ranks < 1)
    throw UsageError("Options::sync_batch_norm_ranks is " + std::to_string(options.sync_batch_norm_ranks) +
                     "; it should be at least 1");
  if (options.share != nullptr && options.mode == Mode::training)
    throw UsageError(
        "Options::share: a training plan has its own parameters; share them with a plan in inference mode");
}

void check_loss_scale(const Nodes& nodes, const Options& options) {
  if (options.loss_scale == 0) return;
  const auto scale = static_cast<float>(options.loss_scale);
  if (!(scale >= std::numeric_limits<float>::min() && scale <= std::numeric_limits<float>::max()))
    throw UsageError("Options::loss_scale is " + shortest(options.loss_scale) +
                     "; give a finite number above 0, or 0 for none");
  if (!options.optimiser || parameter_dtype(options.dtype) != DType::f32 || !is_loss(nodes[nodes.output()].op))
    throw UsageError(
        "Options::loss_scale: graph " + nodes.graph().name() + " in " + std::string(to_string(options.dtype)) +
        " has no update to scale the loss for; it needs an optimiser, losses of f32, and a loss as output");
}

void check_lazy_updates(const Nodes& nodes, const Options& options) {
  check_enumerator(options.table_updates, TableUpdates::lazy, "Options::table_updates");
  if (options.table_updates == TableUpdates::dense) return;
  const std::string what = "Options::table_updates: lazy updates ";
  if (!options.optimiser) throw UsageError(what + "need Options::optimiser");
  if (options.clip_norm > 0)
    throw UsageError(what + "and a clip_norm, which takes the norm of all parameters at once; leave one out");
  check_lazy(*options.optimiser);
  for (const NodeId id : nodes.ids())
    if (std::holds_alternative<Embedding>(nodes[id].op)) return;
  throw UsageError(what + "are for embeddings, and graph " + nodes.graph().name() + " has none");
}

void check_options(const Nodes& nodes, const Options& options) {
  check_enumerator(options.mode, Mode::training, "Options::mode");
  check_enumerator(options.dtype, DType::u64, "Options::dtype");
  check_enumerator(options.layout, Layout::nhwc, "Options::layout");
  check_enumerator(options.keep, Keep::cheap, "Options::keep");
  check_choice(options.choice, "Options::choice");
  check_training(options);
  check_loss_scale(nodes, options);
  check_lazy_updates(nodes, options);
  for (const auto& [name, choice] : options.choice_of) {
    check_choice(choice, "Options::choice_of[\"" + name + "\"]");
    if (nodes.graph().find(name) >= 0) continue;
    std::vector<std::string> names;
    for (const NodeId node : nodes.ids()) names.push_back(nodes[node].name);
    throw UsageError("Options::choice_of: graph " + nodes.graph().name() + " has no node " + name + "; " +
                     near_names(name, names));
  }
}

/// Throws UsageError unless the other plan has every parameter and state of this graph, in the same type and layout.
void check_shared(const Nodes& nodes, const Backend& backend, const Options& options) {
  if (options.share == nullptr) return;
  const Plan& other = *options.share;
  const auto fail = [&](const std::string& why) {
    throw UsageError("graph " + nodes.graph().name() + " cannot share the parameters of the plan of " +
                     other.graph().name() + ": " + why);
  };
  if (&other.backend() != &backend) fail("it runs on another backend");
  if (parameter_dtype(other.options().dtype) != parameter_dtype(options.dtype) ||
      other.options().layout != options.layout)
    fail("its parameters have another element type, or its layout is another");
  const auto same = [&](const std::string& name, const Tensor& there, const Shape& here) {
    if (there.shape != here) fail(name + " is " + to_string(there.shape) + " there and " + to_string(here) + " here");
  };
  const auto check_all = [&](const std::vector<Stored>& all, Tensor (Plan::*get)(std::string_view) const) {
    for (const Stored& one : all) {
      same(one.name, (other.*get)(one.name), one.shape);
      for (const std::string& alias : one.aliases)
        if ((other.*get)(alias).data != (other.*get)(one.name).data)
          fail(alias + " is " + one.name + " here, and has its own numbers there");
    }
  };
  check_all(nodes.graph().parameters(), &Plan::parameter);
  check_all(nodes.graph().states(), &Plan::state);
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

/// Refuses parameters that only labels or ids depend on: they would never get a gradient.
void check_gradients_exist(const Nodes& nodes) {
  const EachNode<bool> reached = reached_by_gradients(nodes);
  for (const NodeId node : nodes.ids())
    if (!reached[node] && !nodes[node].params.empty())
      throw UsageError("graph " + nodes.graph().name() + ": the value of node " + nodes[node].name +
                       " is read only as labels or ids, which have no gradient, so its parameters cannot be trained");
}

/// Refuses sizes beyond any machine, so that the sums of sizes that follow cannot exceed 64 bits.
void check_bytes(const Nodes& nodes, const Options& options) {
  double elements = 0;
  for (const NodeId node : nodes.ids()) elements += static_cast<double>(nodes[node].shape.count());
  for (const Stored& parameter : nodes.graph().parameters()) elements += static_cast<double>(parameter.shape.count());
  if (elements * static_cast<double>(size_of(parameter_dtype(options.dtype))) > 0x1p58)
    throw ShapeError("graph " + nodes.graph().name() + ": its values and parameters take more than 2^58 bytes");
}

}  // namespace

void check(const Nodes& nodes, const Backend& backend, const Options& options) {
  if (nodes.size() == 0 || nodes.is_input(nodes.output()))
    throw UsageError("graph " + nodes.graph().name() +
                     " computes nothing: its last node must be an op, whose value is the output");
  check_readers(nodes);
  check_options(nodes, options);
  check_shared(nodes, backend, options);
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
