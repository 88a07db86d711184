// One pass of one layer by one algorithm.

#include "layer_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lamina/error.h"
#include "support/warm_up.h"

namespace lamina::bench {
namespace {

constexpr double short_seconds = 0.01;  // a hundred times what it takes to wake a sleeping thread
constexpr int runs_for_bits = 3;

}  // namespace

SharedReference no_reference_yet() { return std::make_shared<std::optional<Reference>>(); }

LayerRun::LayerRun(Backend& backend, const Graph& graph, const Options& options, Pass pass,
                   const SharedReference& shared)
    : pass_(pass), plan_(graph, backend, options), stopwatch_(plan_, true) {
  const auto call = std::find_if(plan_.calls().begin(), plan_.calls().end(), [&](const Call& c) { return covered(c); });
  if (call == plan_.calls().end())
    throw Unsupported(fmt::format("nothing to run: {} of {} is a view in the plan", to_string(pass), graph.name()));
  facts_.algorithm = call->algorithm;
  facts_.workspace_bytes = call->workspace_bytes;
  facts_.deterministic = call->deterministic;
  facts_.math = call->math;
  facts_.guaranteed_error = call->max_error;
  facts_.tied = call->tied;

  first_ = timed();
  is_short_ = first_.seconds < short_seconds;
  first_bits_ = bits_of(plan_.backend().device(), results());
  facts_.runs_compared = 1;
  if (has_reference(graph.nodes().back().op)) {
    Device& device = plan_.backend().device();
    if (!*shared) *shared = reference_of(device, graph.nodes().back().op, pass_, args());
    facts_.error = error_of(device, pass_, args(), **shared);
  }
  if (Device& device = plan_.backend().device(); device.longest_hold() > 0) {
    warm_up(device, [this] { enqueue(); });  // the device was idle while the host summed the reference
    first_ = timed();
    is_short_ = first_.seconds < short_seconds;
  }
  for (int i = 0; is_short_ && i < runs_for_bits; ++i) {
    timed();
    look_at_bits();
  }
}

bool LayerRun::covered(const Call& call) const {
  return std::find(call.passes.begin(), call.passes.end(), pass_) != call.passes.end();
}

Sample LayerRun::run() {
  const Sample sample = timed();
  if (!is_short_) look_at_bits();
  return sample;
}

void LayerRun::enqueue() {
  plan_.forward();
  if (pass_ != Pass::forward) plan_.backward();
}

/// Sums the calls that cover the pass. The processor's time is that of the whole half.
Sample LayerRun::timed() {
  const bool backward = pass_ != Pass::forward;
  if (backward) plan_.forward();
  const double cpu_start = cpu_seconds();
  const std::vector<double> seconds = backward ? stopwatch_.backward() : stopwatch_.forward();
  Sample sample{0, cpu_seconds() - cpu_start, stopwatch_.launches(), plan_.backend().device().state()};
  const std::size_t first = backward ? plan_.forward_calls() : 0;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    if (covered(plan_.calls()[first + i])) sample.seconds += seconds[i];
  return sample;
}

std::vector<Tensor> LayerRun::results() const {
  if (pass_ == Pass::forward) return {plan_.output()};
  std::vector<Tensor> tensors;
  if (pass_ == Pass::backward_params) {
    for (const std::string& name : plan_.parameter_names()) tensors.push_back(plan_.parameter_gradient(name));
  } else {
    for (const Node& node : plan_.graph().nodes())
      if (node.inputs.empty()) tensors.push_back(plan_.input_gradient(node.name));
  }
  return tensors;
}

void LayerRun::look_at_bits() {
  ++facts_.runs_compared;
  facts_.same_bits = facts_.same_bits && bits_of(plan_.backend().device(), results()) == first_bits_;
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

std::unique_ptr<LayerRun> open_layer(Backend& backend, const Case& c, const Graph& graph, const Node& node, Pass pass,
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
  text += fmt::format(", {} bits in {} runs", facts.same_bits ? "same" : "other", facts.runs_compared);
  if (facts.error) text += fmt::format(", error {:.1e} of the terms", facts.error->of_terms);
  if (!facts.tied.empty()) text += fmt::format(", tied with {}", fmt::join(facts.tied, ", "));
  return text;
}

}  // namespace lamina::bench
