// Functions of single elements, limits and casts; GELU, also as several nodes.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "lib/onnx/operators.h"

namespace lamina::onnx {
namespace {

using Of = lamina::Function;

void import_relu(NodeContext& context) { context.result_of(Relu{}, context.dynamic(0)); }

void import_reciprocal(NodeContext& context) { context.result_of(Pointwise{Of::pow, -1}, context.dynamic(0)); }

void import_function(NodeContext& context) {
  const Of function = enumerator_of<Of>(context.node().op_type, function_names).value();
  context.result_of(Pointwise{function}, context.dynamic(0));
}

/// `exact`, if the number equals it up to rounding to f32; else the number.
double about(double number, double exact) { return is_about(number, exact) ? exact : number; }

/// The functions with an attribute alpha.
void import_with_alpha(NodeContext& context) {
  const std::string_view op = context.node().op_type;
  const bool is_selu = op == "Selu";
  const Of function = is_selu ? Of::elu : enumerator_of<Of>(op, function_names).value();
  const double usual = op == "LeakyRelu" ? 0.01 : is_selu ? selu_alpha : 1;
  const double alpha = about(context.number("alpha", usual), usual);
  const double scale = about(context.number("gamma", is_selu ? selu_scale : 1), is_selu ? selu_scale : 1);
  if (alpha < 0 || scale < 0 || (function == Of::celu && alpha == 0))
    throw Refusal{"its alpha or gamma is below 0, or a Celu's alpha is 0: use a positive one"};
  context.result_of(Pointwise{function, alpha, function == Of::elu ? scale : 0}, context.dynamic(0));
}

void import_gelu(NodeContext& context) {
  const bool by_tanh = context.text("approximate", "none") == "tanh";
  context.result_of(Pointwise{by_tanh ? Of::gelu_tanh : Of::gelu}, context.dynamic(0));
}

/// A Sigmoid alone, or with the Mul by x that follows it: a silu.
void import_sigmoid(NodeContext& context) {
  context.dynamic(0);  // refuses a constant before the Mul is fused
  const bool is_silu = context.fuse_chain({{.op_type = "Mul", .with = context.input_name(0)}});
  context.result_of(Pointwise{is_silu ? Of::silu : Of::sigmoid}, context.dynamic(0));
}

/// Beyond a threshold PyTorch's exporter takes x instead of softplus(x). From 20 on both agree to a part in 10^9.
void fuse_threshold(NodeContext& context) {
  const std::string_view x = context.input_name(0);
  for (const NodeContext& other : context.siblings(0)) {
    const bool is_condition =
        other.node().op_type == "Greater" && other.inputs() == 2 && other.input_name(0) == x && other.is_constant(1);
    if (is_condition && other.constant(1).count() == 1 && other.constant(1).at(0) >= 20 &&
        context.fuse_chain({{.op_type = "Where", .with = x, .side = &other}}))
      return;
  }
}

void import_softplus(NodeContext& context) {
  context.dynamic(0);
  fuse_threshold(context);
  const bool is_mish = context.fuse_chain({{"Tanh"}, {.op_type = "Mul", .with = context.input_name(0)}});
  context.result_of(Pointwise{is_mish ? Of::mish : Of::softplus}, context.dynamic(0));
}

void import_hard_sigmoid(NodeContext& context) {
  constexpr double sixth = 1.0 / 6;
  context.dynamic(0);
  const double alpha = about(context.number("alpha", 0.2), sixth);
  const double beta = context.number("beta", 0.5);
  const bool is_swish =
      alpha == sixth && beta == 0.5 && context.fuse_chain({{.op_type = "Mul", .with = context.input_name(0)}});
  context.result_of(is_swish ? Pointwise{Of::hard_swish} : Pointwise{Of::hard_sigmoid, alpha, beta},
                    context.dynamic(0));
}

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Clips the operand. If low is above high, high wins.
void clip(NodeContext& context, std::size_t operand, double low, double high) {
  constexpr double none = std::numeric_limits<float>::max();  // exporters write it for no limit
  const auto bound = [](double number) { return std::abs(number) >= none ? std::copysign(infinity, number) : number; };
  low = bound(low), high = bound(high);
  const DynamicValue& x = low == -infinity && high == infinity ? context.padded(operand) : context.dynamic(operand);
  if (low == -infinity && high == infinity) return context.result(DynamicValue(x));
  const Op op = low == 0 && high == infinity ? Op(Relu{}) : Op(Pointwise{Of::clip, std::min(low, high), high});
  context.result_of(op, x);
}

void import_clip(NodeContext& context) {
  const auto limit = [&](const char* name, std::size_t input, double otherwise) {
    if (context.opset() < 11) return context.number(name, otherwise);
    return context.has(input) ? limit_of(context, input, std::string("its limit ") + name) : otherwise;
  };
  clip(context, 0, limit("min", 1, -infinity), limit("max", 2, infinity));
}

/// Max and Min: a Clip for a value and numbers, a Binary for values.
void import_limit(NodeContext& context) {
  bool any_constant = context.inputs() < 2;
  for (std::size_t i = 0; i < context.inputs(); ++i) any_constant = any_constant || context.is_constant(i);
  const bool is_max = context.node().op_type == "Max";
  if (!any_constant) return join_all(context);
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
  clip(context, *operand, is_max ? limit : -infinity, is_max ? infinity : limit);
}

// ---- GELU in parts, as PyTorch's exporters write it before opset 20, and as models write it by hand. ----

using Link = NodeContext::Link;

/// Whether the node multiplies x by the number, or divides x by its inverse.
bool multiplies_by(const NodeContext& node, std::string_view x, double number) {
  const std::string_view op = node.node().op_type;
  if (node.inputs() != 2 || (op != "Mul" && op != "Div")) return false;
  const std::size_t at = op == "Mul" && node.is_constant(0) ? 0 : 1;
  return node.is_constant(at) && node.input_name(1 - at) == x && node.constant(at).count() == 1 &&
         is_about(node.constant(at).at(0), op == "Mul" ? number : 1 / number);
}

/// Fuses what follows `start`, which is x / sqrt(2), the cube of x or its square. The last factor is x / 2, the result
/// of `half`; without `half`, x. Does nothing and returns false for other nodes.
bool fuse_from(NodeContext& start, std::string_view x, const NodeContext* half) {
  constexpr Link one{"Add", 1}, inner{"Mul", std::numbers::sqrt2 * std::numbers::inv_sqrtpi}, scale{"Mul", 0.044715};
  const Link times_x{.op_type = "Mul", .with = x}, plus_x{.op_type = "Add", .with = x};
  const Link factor{.op_type = "Mul", .with = half ? "" : x, .side = half};
  const auto fuse = [&](auto... links) {
    return half ? start.fuse_chain({links..., factor})
                : start.fuse_chain({links..., factor, {"Mul", 0.5}}) ||
                      start.fuse_chain({links..., {"Mul", 0.5}, factor});
  };
  const std::string_view op = start.node().op_type;
  const auto is_cube = [&] { return op == "Pow" && start.is_constant(1) && limit_of(start, 1, "its exponent") == 3; };
  Op gelu = Pointwise{Of::gelu_tanh};
  if (multiplies_by(start, x, std::numbers::sqrt2 / 2)) {
    if (!fuse(Link{"Erf"}, one)) return false;
    gelu = Pointwise{Of::gelu};
  } else if (op == "Mul" && start.input_name(0) == x && start.input_name(1) == x) {
    if (!fuse(times_x, scale, plus_x, inner, Link{"Tanh"}, one)) return false;
  } else if (!is_cube() || !fuse(scale, plus_x, inner, Link{"Tanh"}, one)) {
    return false;
  }
  start.result_of(gelu, start.dynamic(start.input_name(0) == x ? 0 : 1));
  return true;
}

void import_random(NodeContext&) {
  throw Refusal{
      "it draws random numbers, as stochastic depth in training: set its p to 0 before the export, or export "
      "net.eval()"};
}

void import_cast(NodeContext& context) {
  if (context.is_constant(0)) return context.result(fold_cast(context));
  const ElementType to = cast_type(context);
  DynamicValue x = context.padded(0);
  const auto is_whole = [](ElementType type) { return type == ElementType::i32 || type == ElementType::i64; };
  if ((is_floating(to) && is_floating(x.type)) || (is_whole(to) && is_whole(x.type)) || to == x.type) {
    x.type = to;
    context.result(x);
  } else {
    throw Refusal{"it converts " + text(x.type) + " to " + text(to) +
                  ": only floating point types are converted to each other; convert before or after the network"};
  }
}

}  // namespace

bool takes_gelu(NodeContext& context, std::size_t input) {
  const std::string_view x = context.input_name(input);
  if (fuse_from(context, x, nullptr)) return true;
  const bool is_half = multiplies_by(context, x, 0.5);
  for (NodeContext& other : context.siblings(input)) {
    NodeContext &start = is_half ? other : context, &half = is_half ? context : other;
    if (multiplies_by(half, x, 0.5) && fuse_from(start, x, &half)) return true;
  }
  return false;
}

Operators elementwise_operators() {
  return {
      {{"Abs", "Exp", "HardSwish", "Log", "Mish", "Sqrt", "Tanh"}, import_function},
      {{"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}, import_random, false},
      {{"Cast", "CastLike"}, import_cast},
      {{"Celu", "Elu", "LeakyRelu", "Selu"}, import_with_alpha},
      {{"Clip"}, import_clip},
      {{"Gelu"}, import_gelu},
      {{"HardSigmoid"}, import_hard_sigmoid},
      {{"Max", "Min"}, import_limit},
      {{"Reciprocal"}, import_reciprocal},
      {{"Relu"}, import_relu},
      {{"Sigmoid"}, import_sigmoid},
      {{"Softplus"}, import_softplus}};
}

}  // namespace lamina::onnx
