// GELU in parts, as PyTorch's exporters write it before opset 20, and as models write it by hand.

#include <numbers>

#include "operators.h"

namespace lamina::onnx {
namespace {

using Link = NodeContext::Link;

/// Whether the node is x times the number; a division counts.
bool multiplies_by(const NodeContext& node, std::string_view x, double number) {
  const std::string_view op = node.node().op_type;
  if (node.inputs() != 2 || (op != "Mul" && op != "Div")) return false;
  const std::size_t at = op == "Mul" && node.is_constant(0) ? 0 : 1;
  return node.is_constant(at) && node.input_name(1 - at) == x && node.constant(at).count() == 1 &&
         is_about(node.constant(at).at(0), op == "Mul" ? number : 1 / number);
}

/// Fuses what follows `start`, which is x / sqrt(2), the cube of x or its square. The last factor is the result of
/// `half`, x / 2, or x if `half` is null. Does nothing and returns false for others.
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
  Op gelu = Pointwise{lamina::Function::gelu_tanh};
  if (multiplies_by(start, x, std::numbers::sqrt2 / 2)) {
    if (!fuse(Link{"Erf"}, one)) return false;
    gelu = Pointwise{lamina::Function::gelu};
  } else if (op == "Mul" && start.input_name(0) == x && start.input_name(1) == x) {
    if (!fuse(times_x, scale, plus_x, inner, Link{"Tanh"}, one)) return false;
  } else if (!is_cube() || !fuse(scale, plus_x, inner, Link{"Tanh"}, one)) {
    return false;
  }
  start.result_of(gelu, start.dynamic(start.input_name(0) == x ? 0 : 1));
  return true;
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

}  // namespace lamina::onnx
