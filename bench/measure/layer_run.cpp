// One pass of one layer by one algorithm.

#include "layer_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "lamina/error.h"
#include "lamina/layer_tuning.h"

namespace lamina::bench {

LayerRun::LayerRun(Backend& backend, const Graph& graph, const Options& options, Pass pass,
                   const SharedReference& shared, bool cold)
    : pass_(pass), plan_(graph, backend, options), stopwatch_(plan_, true, cold) {
  const auto call =
      std::find_if(plan_.calls().begin(), plan_.calls().end(), [&](const Call& c) { return c.covers(pass); });
  if (call == plan_.calls().end())
    throw Unsupported(fmt::format("nothing to run: {} of {} is a view in the plan", to_string(pass), graph.name()));
  facts_.call = *call;
  args_ = &plan_.args(static_cast<std::size_t>(call - plan_.calls().begin()));

  const double seconds = stopwatch_.pass(pass_).seconds;
  Device& device = plan_.backend().device();
  if (has_reference(graph.nodes().back().op)) {
    if (!*shared) *shared = reference_of(device, graph.nodes().back().op, pass_, *args_);
    facts_.error = error_of(device, pass_, *args_, **shared);
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

void LayerRun::look(double seconds) {
  inspect_timed_run(
      plan_.backend().device(), facts_.runs_compared, seconds, [this] { enqueue(); },
      [this] {
        const std::uint64_t bits = bits_of(plan_.backend().device(), results_of(pass_, *args_));
        if (facts_.runs_compared++ == 0) first_bits_ = bits;
        facts_.same_bits = facts_.same_bits && bits == first_bits_;
      });
}

std::unique_ptr<LayerRun> open_layer(Backend& backend, const Config& c, const Graph& graph, const Node& node, Pass pass,
                                     const NamedAlgorithm& algorithm, const Choice& demands,
                                     const SharedReference& reference, bool cold) {
  try {
    return std::make_unique<LayerRun>(backend, alone(graph, node),
                                      layer_options(c, node, pass, algorithm.name, demands), pass, reference, cold);
  } catch (const UsageError& error) {
    if (algorithm.listed) throw;
    throw Unsupported(error.what());
  }
}

std::string to_string(const LayerFacts& facts) {
  const Call& call = facts.call;
  std::string text = fmt::format("{}, {}", to_string(call.math), call.deterministic ? "deterministic" : "any order");
  text += fmt::format(", {} in {} runs", facts.same_bits ? "bit-identical" : "not bit-identical", facts.runs_compared);
  if (facts.error) text += fmt::format(", error {:.1e} of the terms", facts.error->of_terms);
  if (!call.tied.empty()) text += fmt::format(", tied with {}", fmt::join(call.tied, ", "));
  return text;
}

}  // namespace lamina::bench
