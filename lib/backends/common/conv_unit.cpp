// A convolution and the ops that follow it in its unit.

#include "conv_unit.h"

#include <variant>

#include "lib/backends/common/lowering.h"
#include "lib/backends/common/on_copies.h"

namespace lamina {
namespace {

/// The position of an op in the order of the tail. 0: the tail may not have it.
int rank(const Op& op) {
  if (std::holds_alternative<BatchNorm>(op)) return 1;
  if (std::holds_alternative<Add>(op)) return 2;
  return is_activation(op) ? 3 : 0;
}

Conv conv_of(const Spec& spec) {
  if (const auto* const conv = std::get_if<Conv>(&spec.op)) return *conv;
  const auto& op = std::get<FullyConnected>(spec.op);
  const Shape& x = spec.x[0].shape;
  return {.channels = op.outputs, .kernel = {x.h, x.w}, .bias = op.bias};
}

}  // namespace

ConvUnit conv_unit(const Spec& spec) {
  ConvUnit unit{.op = conv_of(spec), .x = spec.x.at(0).shape, .y = spec.y.shape};
  unit.dtype = parameter_dtype(half_type(spec));
  unit.values = has_one_type(spec) ? spec.y.dtype : unit.dtype;
  unit.inference = spec.mode == Mode::inference;
  for (const Op& op : spec.tail) {
    unit.relu |= std::holds_alternative<Relu>(op);
    unit.add |= std::holds_alternative<Add>(op);
    if (const auto* const function = std::get_if<Pointwise>(&op)) unit.activation = *function;
    if (const auto* const norm = std::get_if<BatchNorm>(&op)) {
      unit.folded = true;
      unit.epsilon = norm->epsilon;
    }
  }
  unit.add_dx = adds_dx(spec, 0);
  unit.add_dw = spec.adds_dw;
  return unit;
}

double terms(const ConvUnit& c, Pass pass) {
  const double kernel = static_cast<double>(c.op.kernel.h) * c.op.kernel.w;
  switch (pass) {
    case Pass::forward: return kernel * c.group_channels();
    case Pass::backward_params: return static_cast<double>(c.y.n) * static_cast<double>(c.y.plane());
    default: return kernel * c.group_filters();
  }
}

bool joins_inference(const std::vector<Op>& tail, std::size_t count, const Op& next) {
  const auto* const its = std::get_if<Pointwise>(&next);
  if (count == 0) return rank(next) > 0;
  if (its != nullptr && its->function != Function::clip && std::holds_alternative<Add>(tail[count - 1])) return false;
  return rank(next) > rank(tail[count - 1]);
}

std::string winograd_refusal(const Conv& op, int tile) {
  const auto by = [](Size size) { return std::to_string(size.h) + "x" + std::to_string(size.w); };
  if (op.kernel != Size(3) && (tile != 2 || op.kernel != Size(5)))
    return (tile == 2 ? "takes 3x3 and 5x5 kernels, not " : "takes 3x3 kernels, not ") + by(op.kernel);
  if (op.stride != Size(1)) return "takes stride 1, not " + by(op.stride);
  if (op.dilation != Size(1)) return "takes dilation 1, not " + by(op.dilation);
  return {};
}

}  // namespace lamina
