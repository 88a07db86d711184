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
constexpr std::size_t block_bytes = 4 << 20;

std::vector<double> values_of(Device& device, const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.shape.count()));
  download(device, std::span<double>(values), tensor);
  return values;
}

/// Single elements of a tensor, by their places in n, c, h, w.
std::vector<double> values_of(Device& device, const Tensor& tensor, const std::vector<std::int64_t>& elements) {
  const Shape& shape = tensor.shape;
  std::vector<double> values(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::int64_t n = elements[i] / shape.image(), in_image = elements[i] % shape.image();
    const std::int64_t c = in_image / shape.plane(), pixel = in_image % shape.plane();
    const std::int64_t at =
        tensor.layout == Layout::nchw ? n * tensor.pitch + in_image : (n * shape.plane() + pixel) * tensor.pitch + c;
    Tensor one{tensor.as<char>() + at * static_cast<std::int64_t>(size_of(tensor.dtype)), {}, tensor.dtype};
    one.pitch = 1;
    download(device, std::span<double>(&values[i], 1), one);
  }
  return values;
}

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
  first_bits_ = bits();
  facts_.runs_compared = 1;
  if (has_reference(graph.nodes().back().op)) {
    if (!*shared) *shared = reference();
    look_at_error(**shared);
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

std::uint64_t LayerRun::bits() const {
  Device& device = plan_.backend().device();
  std::vector<std::uint64_t> block(block_bytes / sizeof(std::uint64_t));
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const Tensor& tensor : results()) {
    if (!tensor) continue;
    const std::size_t bytes = static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype);
    for (std::size_t at = 0; at < bytes; at += block_bytes) {
      const std::size_t here = std::min(block_bytes, bytes - at);
      block[(here - 1) / sizeof(std::uint64_t)] = 0;  // the last word may be filled in part
      device.download(block.data(), tensor.as<char>() + at, here);
      for (std::size_t i = 0; i * sizeof(std::uint64_t) < here; ++i) {
        hash = (hash ^ block[i]) * 0x9E3779B97F4A7C15U;
        hash ^= hash >> 32;
      }
    }
  }
  return hash;
}

void LayerRun::look_at_bits() {
  ++facts_.runs_compared;
  facts_.same_bits = facts_.same_bits && bits() == first_bits_;
}

Reference LayerRun::reference() const {
  Device& device = plan_.backend().device();
  const Node& node = plan_.graph().nodes().back();
  const std::vector<std::string> names = plan_.parameter_names();
  Operands operands;
  if (pass_ != Pass::backward_data) operands.x = values_of(device, plan_.input());
  if (pass_ != Pass::backward_params) operands.w = values_of(device, plan_.parameter(names.front()));
  if (pass_ == Pass::forward && names.size() > 1) operands.bias = values_of(device, plan_.parameter(names[1]));
  if (pass_ != Pass::forward) operands.dy = values_of(device, plan_.output_gradient());
  return make_reference(node.op, plan_.input().shape, pass_, operands);
}

void LayerRun::look_at_error(Reference& reference) {
  const std::vector<Tensor> all = results();
  facts_.error = compare(reference, values_of(plan_.backend().device(), all.front(), reference.elements));
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
