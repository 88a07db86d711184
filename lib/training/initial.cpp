// The parameters at the start of a training.

#include <algorithm>
#include <span>
#include <string_view>

#include "checkpoint.h"
#include "lamina/error.h"
#include "lamina/initialisers.h"
#include "lamina/random.h"
#include "lib/core/text/one_of.h"

namespace lamina::training {
namespace {

/// The initialiser of a parameter: ConvNeXt's for a scale whose shift is fixed, PyTorch's for a PRelu, else Keras'.
/// `weights` is the initialiser of convolutions and fully connected ops.
std::string usual(const Node& node, std::string_view part, const std::string& weights) {
  const Op& op = node.op;
  if (is_norm(op)) return part == "weight" ? "ones" : "zeros";
  if (std::holds_alternative<ScaleShift>(op))
    return part == "shift" ? "zeros" : node.fixed.back() ? "layer_scale" : "ones";
  if (std::holds_alternative<PRelu>(op)) return "prelu";
  if (std::holds_alternative<Embedding>(op)) return "uniform";
  if (const auto* its = std::get_if<Recurrent>(&op)) {
    if (part.starts_with("bias")) return its->cell == Cell::lstm ? "unit_forget_bias" : "zeros";
    return part.starts_with("weight_hh") ? "orthogonal" : "glorot_uniform";
  }
  return part == "bias" ? "zeros" : weights;
}

Fans fans_of(const Op& op, const Shape& shape) {
  return holds<Conv, ConvTranspose>(op) ? conv_fans(shape) : dense_fans(shape);
}

}  // namespace

void fill_parameters(Plan& plan, const TrainerOptions& options) {
  const auto known = plan.parameter_names();
  for (const auto& [name, initialiser] : options.initialiser_of)
    if (std::ranges::find(known, name) == known.end())
      throw UsageError("initialiser_of: no parameter " + name + "; " + near_names(name, known));
  for (const Stored& its : plan.graph().parameters()) {
    const Node& node = plan.graph().nodes()[static_cast<std::size_t>(its.first.node)];
    const auto chosen = options.initialiser_of.find(its.name);
    std::vector<double> values(static_cast<std::size_t>(its.shape.count()));
    initialise(values,
               chosen != options.initialiser_of.end()
                   ? chosen->second
                   : usual(node, parameter_names(node.op)[its.first.index], options.initialiser),
               its.shape, fans_of(node.op, its.shape), hash(its.name) ^ philox(options.seed, 1, 0)[0]);
    upload(plan.backend().device(), plan.parameter(its.name), std::span<const double>(values));
  }
  const std::uint64_t first_step = options.seed << 32;  // masks depend on it, so two seeds have different masks
  for (const std::string& name : counters_of(plan))
    plan.backend().device().upload(plan.state(name).data, &first_step, sizeof first_step);
  plan.parameters_changed();
}

}  // namespace lamina::training
