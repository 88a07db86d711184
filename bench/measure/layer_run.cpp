// One pass of one layer by one algorithm.

#include "layer_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lamina/error.h"
#include "lib/tune/tune.h"

namespace lamina::bench {

SharedReference no_reference_yet() { return std::make_shared<std::optional<Reference>>(); }

LayerRun::LayerRun(Backend& backend, const Graph& graph, const Options& options, Pass pass,
                   const SharedReference& shared)
    : pass_(pass), plan_(graph, backend, options), stopwatch_(plan_, true) {
  const auto call =
      std::find_if(plan_.calls().begin(), plan_.calls().end(), [&](const Call& c) { return covers(c, pass_); });
  if (call == plan_.calls().end())
    throw Unsupported(fmt::format("nothing to run: {} of {} is a view in the plan", to_string(pass), graph.name()));
  facts_.algorithm = call->algorithm;
  facts_.workspace_bytes = call->workspace_bytes;
  facts_.deterministic = call->deterministic;
  facts_.math = call->math;
  facts_.guaranteed_error = call->max_error;
  facts_.tied = call->tied;

  const double seconds = stopwatch_.pass(pass_).seconds;
  Device& device = plan_.backend().device();
  if (has_reference(graph.nodes().back().op)) {
    if (!*shared) *shared = reference_of(device, graph.nodes().back().op, pass_, args());
    facts_.error = error_of(device, pass_, args(), **shared);
  }
  look(seconds);
}

Sample LayerRun::run() {
  const Sample sample = stopwatch_.pass(pass_);
  look(sample.seconds);
  return sample;
}

void LayerRun::enqueue() {
  plan_.forward();
  if (pass_ != Pass::forward) plan_.backward();
}

std::vector<Tensor> LayerRun::results() const {
  if (pass_ == Pass::forward) return {plan_.output()};
  std::vector<Tensor> tensors;
  if (pass_ == Pass::backward_params) {
    for (const std::string& name : plan_.parameter_names()) tensors.push_back(plan_.parameter_gradient(name));
  } else {
    const Node& node = plan_.graph().nodes().back();
    const std::vector<bool> with_gradient = inputs_with_gradient(plan_.graph(), node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (with_gradient[i])
        tensors.push_back(plan_.input_gradient(plan_.graph().nodes()[static_cast<std::size_t>(node.inputs[i])].name));
  }
  return tensors;
}

void LayerRun::look(double seconds) {
  look_at_run(
      plan_.backend().device(), facts_.runs_compared, seconds, [this] { enqueue(); },
      [this] {
        const std::uint64_t bits = bits_of(plan_.backend().device(), results());
        if (facts_.runs_compared++ == 0) first_bits_ = bits;
        facts_.same_bits = facts_.same_bits && bits == first_bits_;
      });
}

Args LayerRun::args() const {
  Args args;
  args.x = {plan_.input()};
  for (const std::string& name : plan_.parameter_names()) args.w.push_back(plan_.parameter(name));
  args.y = plan_.output();
  if (pass_ != Pass::forward) args.dy = plan_.output_gradient();
  if (pass_ == Pass::backward_params) args.dw = results();
  if (pass_ == Pass::backward_data) args.dx = results();
  return args;
}

std::unique_ptr<LayerRun> open_layer(Backend& backend, const Config& c, const Graph& graph, const Node& node, Pass pass,
                                     const NamedAlgorithm& algorithm, const Choice& demands,
                                     const SharedReference& reference) {
  try {
    return std::make_unique<LayerRun>(backend, alone(graph, node),
                                      layer_options(c, node, pass, algorithm.name, demands), pass, reference);
  } catch (const UsageError& error) {
    if (algorithm.listed) throw;
    throw Unsupported(error.what());
  }
}

std::string to_string(const LayerFacts& facts) {
  std::string text = fmt::format("{}, {}", to_string(facts.math), facts.deterministic ? "deterministic" : "any order");
  text += fmt::format(", {} in {} runs", facts.same_bits ? "bit-identical" : "not bit-identical", facts.runs_compared);
  if (facts.error) text += fmt::format(", error {:.1e} of the terms", facts.error->of_terms);
  if (!facts.tied.empty()) text += fmt::format(", tied with {}", fmt::join(facts.tied, ", "));
  return text;
}

}  // namespace lamina::bench
