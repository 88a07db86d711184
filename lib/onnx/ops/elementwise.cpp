// Operators on single elements, and sums.

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/onnx/aligned.h"
#include "operators.h"

namespace lamina::onnx {
namespace {

void unary(NodeContext& context, const Op& op) {
  const DynamicValue& x = context.dynamic(0);
  const Value y = context.append(op, {x.value}, context.name());
  context.result({.value = y, .view = x.view, .type = x.type});
}

/// The addition of values that are all computed.
void add_all(NodeContext& context) {
  std::vector<Value> operands;
  const DynamicValue& first = context.dynamic(0);
  for (std::size_t i = 0; i < context.inputs(); ++i) {
    const DynamicValue& x = context.dynamic(i);
    if (extents(x.view) != extents(first.view)) {
      throw Refusal{"it adds " + text(extents(first.view)) + " and " + text(extents(x.view)) +
                    ": it would need an op that repeats values"};
    }
    if (x.view != first.view || x.value.shape() != first.value.shape()) {
      throw Refusal{"its operands are kept in different orders: it would need an op that moves numbers"};
    }
    operands.push_back(x.value);
  }
  const Value y = operands.size() == 1 ? operands.front() : context.append(Add{}, operands, context.name());
  context.result({.value = y, .view = first.view, .type = first.type});
}

/// The product of two values that are computed: of equal extents, or one number for each plane of the other.
void multiply(NodeContext& context) {
  if (context.inputs() != 2) context.attributes().invalid("multiplies other than two values");
  const DynamicValue &a = context.dynamic(0), &b = context.dynamic(1);
  const Shape &of_a = a.value.shape(), &of_b = b.value.shape();
  if (of_a == of_b && a.view == b.view) {
    const Value y = context.append(Multiply{}, {a.value, b.value}, context.name());
    return context.result({.value = y, .view = a.view, .type = a.type});
  }
  const bool second = of_a.plane() >= of_b.plane();  // whether that is the factor of each plane
  const DynamicValue &x = second ? a : b, &factor = second ? b : a;
  const Shape &whole = x.value.shape(), &planes = factor.value.shape();
  if (x.view.size() != factor.view.size() || planes != Shape{whole.n, whole.c, 1, 1}) {
    throw Refusal{"it multiplies " + text(extents(a.view)) + " by " + text(extents(b.view)) +
                  ": other than equal extents, or one number for each image and channel, would need an op"};
  }
  const Value y = context.append(Multiply{}, {as_image(x), as_image(factor)}, context.name());
  context.result({.value = y, .view = x.view, .type = x.type});
}

/// Which element of a constant, aligned at the last axis, is that of each channel of the graph's value. Refusal if it
/// differs within one.
std::vector<std::int64_t> elements_by_channel(const NodeContext& context, const DynamicValue& x,
                                              const Constant& constant) {
  const Shape shape = x.value.shape();
  const Extents own = extents(x.view);
  const Extents its = aligned(context.attributes(), context.opset(), constant.extents, own.size());
  context.consume_budget(shape.c);
  std::vector<std::int64_t> at(static_cast<std::size_t>(shape.c), 0);
  std::int64_t step = 1;  // in the constant
  bool fits = its.size() <= own.size() && constant.count() > 0;
  for (std::size_t i = its.size(); fits && i-- > 0;) {
    if (its[i] == 1) continue;
    const Axis& axis = x.view[i + own.size() - its.size()];
    fits = its[i] == extent(axis);
    for (std::size_t k = axis.size(); fits && k-- > 0;) {
      const OnnxFactor factor = axis[k];
      fits = factor.stride >= shape.plane() && factor.extent * factor.stride <= shape.image();
      const std::int64_t stride = factor.stride / shape.plane();
      for (std::size_t c = 0; fits && c < at.size(); ++c) {
        at[c] += static_cast<std::int64_t>(c) / stride % factor.extent * step;
      }
      step *= factor.extent;
    }
  }
  if (!fits) {
    throw Refusal{"its operand of " + text(its) + " is not one number, or one for each channel, of " + text(own) +
                  ": it would need an op " + std::string(context.attributes().node().op_type) + " that repeats values"};
  }
  return at;
}

/// The scale and shift of each channel, from a constant that is operand `at`.
NodeContext::Affine affine_of(const NodeContext& context, const DynamicValue& x, std::size_t at,
                              const Constant& constant) {
  const std::string_view op = context.attributes().node().op_type;
  const std::vector<std::int64_t> elements = elements_by_channel(context, x, constant);
  context.consume_budget(2 * x.value.shape().c);
  NodeContext::Affine affine{.scale = std::vector<double>(elements.size(), 1),
                             .shift = std::vector<double>(elements.size(), 0)};
  for (std::size_t c = 0; c < elements.size(); ++c) {
    const double number = constant.at(elements[c]);
    if (op == "Add") affine.shift[c] = number;
    if (op == "Sub") affine.shift[c] = at == 0 ? number : -number;
    if (op == "Sub" && at == 0) affine.scale[c] = -1;
    if (op == "Mul") affine.scale[c] = number;
    if (op == "Div") affine.scale[c] = 1 / number;
  }
  return affine;
}

}  // namespace

void import_relu(NodeContext& context) { unary(context, Relu{}); }
void import_hard_swish(NodeContext& context) { unary(context, HardSwish{}); }

void import_sigmoid(NodeContext& context) {
  context.dynamic(0);  // before the Mul is marked as done
  if (context.fuse_product()) {
    unary(context, Silu{});
  } else {
    unary(context, Sigmoid{});
  }
}

void import_hard_sigmoid(NodeContext& context) {
  constexpr double sixth = 1.0 / 6;
  context.dynamic(0);
  double alpha = context.attributes().number("alpha", 0.2);
  if (static_cast<float>(alpha) == static_cast<float>(sixth)) alpha = sixth;
  const double beta = context.attributes().number("beta", 0.5);
  if (alpha == sixth && beta == 0.5 && context.fuse_product()) {
    unary(context, HardSwish{});
  } else {
    unary(context, HardSigmoid{.alpha = alpha, .beta = beta});
  }
}
void import_tanh(NodeContext& context) { unary(context, Tanh{}); }

void import_clip(NodeContext& context) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Attributes& node = context.attributes();
  const auto limit = [&](const char* name, std::size_t input, double otherwise) {
    if (context.opset() < 11) return node.number(name, otherwise);
    if (!context.has(input)) return otherwise;
    const Constant& number = context.constant(input, std::string("its limit ") + name);
    if (number.count() != 1) node.invalid("has " + text(number.extents) + " as its limit " + name);
    return number.type == ElementType::f32 ? as_written(static_cast<float>(number.at(0))) : number.at(0);
  };
  const double low = limit("min", 1, -infinity), high = limit("max", 2, infinity);
  constexpr double none = std::numeric_limits<float>::max();  // how exporters write that there is no limit
  if (low == 0 && high >= none) {
    unary(context, Relu{});
  } else if (low <= -none && high >= none) {
    context.result(context.padded(0));
  } else {
    const auto bound = [](double number) {
      return std::abs(number) >= none ? std::copysign(infinity, number) : number;
    };
    unary(context, Clip{.low = std::min(bound(low), bound(high)), .high = bound(high)});  // the high one wins
  }
}

void import_add(NodeContext& context) {
  if (context.inputs() == 2 && (context.is_constant(0) || context.is_constant(1))) {
    import_affine(context);
  } else {
    add_all(context);
  }
}

void import_sum(NodeContext& context) { add_all(context); }

/// A constant beside a value: by channel, or one number.
void import_affine(NodeContext& context) {
  const Attributes& node = context.attributes();
  const std::string_view op = node.node().op_type;
  if (context.is_constant(0) && context.is_constant(1)) {
    fold_or_refuse(context);
    return;
  }
  const std::size_t at = context.is_constant(1) ? 1 : 0;
  if (!context.is_constant(at) && (squared(context) || divided_by_squares(context))) return;
  if (context.is_constant(at) && squares_and_number(context, at)) return;
  if (!context.is_constant(at) && op == "Mul") return multiply(context);
  if (!context.is_constant(at)) throw Refusal{"both operands are computed: it would need an op " + std::string(op)};
  const DynamicValue& x = context.dynamic(1 - at);
  if (op == "Div" && !is_floating(x.type))
    throw Refusal{"it divides whole numbers: it would need an op that rounds towards zero"};
  const Constant& constant = context.constant(at, "its operand");
  if (at == 0 && op == "Div") throw Refusal{"it divides a constant by a value: it would need an op Div"};
  NodeContext::Affine affine = affine_of(context, x, at, constant);
  const Shape shape = x.value.shape();
  const auto channels = std::find(x.view.begin(), x.view.end(), axis(shape.c, shape.plane()));
  if (is_floating(x.type) && shape.c > 1 && channels != x.view.end()) {
    const NodeContext::Affine more =
        context.fuse_affine(extents(x.view), static_cast<std::size_t>(channels - x.view.begin()), false);
    for (std::size_t c = 0; c < more.scale.size(); ++c) {
      affine.scale[c] *= more.scale[c];
      affine.shift[c] = affine.shift[c] * more.scale[c] + more.shift[c];
    }
  }
  append_affine(context, x, std::move(affine), constant.type);
}

void append_affine(NodeContext& context, const DynamicValue& x, NodeContext::Affine affine, ElementType type) {
  const int channels = x.value.shape().c;
  const Value y =
      context.append(Conv{.channels = channels, .kernel = 1, .groups = channels}, {x.value}, context.name());
  context.weights(y, "weight", {channels, 1, 1, 1}, std::move(affine.scale), type);
  context.weights(y, "bias", {channels}, std::move(affine.shift), type);
  context.result({.value = y, .view = x.view, .type = x.type});
}

void import_pow(NodeContext& context) {
  if (context.is_constant(0)) return fold_or_refuse(context);
  if (!context.is_constant(1) || !squares_and_number(context, 1)) throw Refusal{"it would need an op Pow"};
}

void import_cast(NodeContext& context) {
  if (context.is_constant(0)) {
    fold_or_refuse(context);
    return;
  }
  DynamicValue x = context.padded(0);
  const auto to = static_cast<ElementType>(context.attributes().integer("to", 0));
  const auto is_whole = [](ElementType type) { return type == ElementType::i32 || type == ElementType::i64; };
  if ((is_floating(to) && is_floating(x.type)) || (is_whole(to) && is_whole(x.type)) || to == x.type) {
    x.type = to;
    context.result(x);
  } else {
    throw Refusal{"it converts " + text(x.type) + " to " + text(to) + ": it would need an op that does"};
  }
}

}  // namespace lamina::onnx
