// Functions of single elements, limits and casts.

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/onnx/folding.h"
#include "operators.h"

namespace lamina::onnx {
namespace {

template <class Each>
void import_each(NodeContext& context) {
  context.result_of(Each{}, context.dynamic(0));
}

void import_sigmoid(NodeContext& context) {
  context.dynamic(0);  // refuses a constant before the Mul is fused
  const Op op = context.fuse_product() ? Op(Silu{}) : Op(Sigmoid{});
  context.result_of(op, context.dynamic(0));
}

void import_hard_sigmoid(NodeContext& context) {
  constexpr double sixth = 1.0 / 6;
  context.dynamic(0);
  double alpha = context.attributes().number("alpha", 0.2);
  if (static_cast<float>(alpha) == static_cast<float>(sixth)) alpha = sixth;
  const double beta = context.attributes().number("beta", 0.5);
  const bool is_swish = alpha == sixth && beta == 0.5 && context.fuse_product();
  context.result_of(is_swish ? Op(HardSwish{}) : Op(HardSigmoid{.alpha = alpha, .beta = beta}), context.dynamic(0));
}

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Clips the operand. If low is above high, high wins.
void clip(NodeContext& context, std::size_t operand, double low, double high) {
  constexpr double none = std::numeric_limits<float>::max();  // exporters write it for no limit
  const auto bound = [](double number) { return std::abs(number) >= none ? std::copysign(infinity, number) : number; };
  low = bound(low), high = bound(high);
  const DynamicValue& x = low == -infinity && high == infinity ? context.padded(operand) : context.dynamic(operand);
  if (low == -infinity && high == infinity) return context.result(DynamicValue(x));
  const Op op = low == 0 && high == infinity ? Op(Relu{}) : Op(Clip{.low = std::min(low, high), .high = high});
  context.result_of(op, x);
}

void import_clip(NodeContext& context) {
  const auto limit = [&](const char* name, std::size_t input, double otherwise) {
    if (context.opset() < 11) return context.attributes().number(name, otherwise);
    return context.has(input) ? limit_of(context, input, std::string("its limit ") + name) : otherwise;
  };
  clip(context, 0, limit("min", 1, -infinity), limit("max", 2, infinity));
}

/// Max and Min of a value and numbers: a Clip.
void import_limit(NodeContext& context) {
  const bool is_max = context.attributes().node().op_type == "Max";
  double limit = is_max ? -infinity : infinity;
  std::optional<std::size_t> operand;
  for (std::size_t i = 0; i < context.inputs(); ++i) {
    if (!context.is_constant(i) && !operand) {
      operand = i;
    } else {
      const double number = limit_of(context, i, "its limit");
      limit = is_max ? std::max(limit, number) : std::min(limit, number);
    }
  }
  is_max ? clip(context, *operand, limit, infinity) : clip(context, *operand, -infinity, limit);
}

void import_random(NodeContext&) {
  throw Refusal{
      "it draws random numbers, as stochastic depth in training: set its p to 0 before the export, or export "
      "net.eval()"};
}

void import_cast(NodeContext& context) {
  const bool like = context.attributes().node().op_type == "CastLike";
  if (context.is_constant(0)) return context.result(converted(context, context.constant(0), context.pending(1).type));
  DynamicValue x = context.padded(0);
  const ElementType to = !like                    ? static_cast<ElementType>(context.attributes().integer("to", 0))
                         : context.is_constant(1) ? context.constant(1, "its type").type
                                                  : context.pending(1).type;
  const auto is_whole = [](ElementType type) { return type == ElementType::i32 || type == ElementType::i64; };
  if ((is_floating(to) && is_floating(x.type)) || (is_whole(to) && is_whole(x.type)) || to == x.type) {
    x.type = to;
    context.result(x);
  } else {
    throw Refusal{"it converts " + text(x.type) + " to " + text(to) +
                  ": only floating point types become each other; convert before or after the network"};
  }
}

}  // namespace
Operators elementwise_operators() {
  return {
      {{"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}, import_random, false},
      {{"Cast", "CastLike"}, import_cast},
      {{"Clip"}, import_clip},
      {{"HardSigmoid"}, import_hard_sigmoid},
      {{"HardSwish"}, import_each<HardSwish>},
      {{"Max", "Min"}, import_limit},
      {{"Relu"}, import_each<Relu>},
      {{"Sigmoid"}, import_sigmoid},
      {{"Tanh"}, import_each<Tanh>}};
}

}  // namespace lamina::onnx
