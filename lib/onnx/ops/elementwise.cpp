// Operators on single elements, and sums.

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/onnx/extents.h"
#include "lib/onnx/folding.h"
#include "operators.h"

namespace lamina::onnx {
namespace {

/// The addition of values that are all computed; a subtraction is the addition of -1 times the second.
void add_all(NodeContext& context, bool subtracts) {
  std::vector<Value> operands;
  const DynamicValue& first = context.dynamic(0);
  for (std::size_t i = 0; i < context.inputs(); ++i) {
    const DynamicValue& x = context.dynamic(i);
    if (extents(x.view) != extents(first.view)) {
      throw Refusal{"it adds " + text(extents(first.view)) + " and " + text(extents(x.view)) +
                    ": computed values need the same extents"};
    }
    if (x.view != first.view || x.value.shape() != first.value.shape()) {
      throw Refusal{std::string("its operands have their axes in different orders: ") + keep_order, true};
    }
    operands.push_back(x.value);
  }
  if (subtracts) {
    operands[1] = context.append(ScaleShift{.by_channel = false}, {operands[1]}, context.name() + ".minus");
    context.weights(operands[1], "scale", {1}, {-1}, first.type, {});
    context.weights(operands[1], "shift", {1}, {0}, first.type, {});
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
    const Extents its = extents(a.view), others = extents(b.view);
    const auto of_planes = [](const Extents& all, const Extents& one) {
      return one.size() > 2 && one.size() == all.size() && element_count(one) == one[0] * one[1] && one[0] == all[0] &&
             one[1] == all[1];
    };
    throw Refusal{"it multiplies " + text(its) + " by " + text(others) +
                      ": the extents need to be equal, or one factor n x c x 1 x 1, as in x * s.view(n, c, 1, 1)",
                  its == others || of_planes(its, others) || of_planes(others, its)};
  }
  const Value y = context.append(Multiply{}, {as_image(x), as_image(factor)}, context.name());
  context.result({.value = y, .view = x.view, .type = x.type});
}

/// A number of a program's text, such as 0.1. Exporters may write it in f32, whatever the type of the model is.
double text_number(double number) {
  const auto single = static_cast<float>(number);
  return single == number ? as_written(single) : number;
}

/// y = scale x + shift, by channel of the graph's value, or with one number of each for all.
struct Numbers {
  std::vector<double> scale{1}, shift{0};
};

/// Which element of a constant, aligned at the last axis of x, is that of each channel of the graph's value. Nothing if
/// it differs within one.
std::optional<Extents> elements_by_channel(const NodeContext& context, const DynamicValue& x, const Extents& its) {
  const Shape shape = x.value.shape();
  const std::size_t rank = x.view.size();
  if (its.size() > rank) return std::nullopt;
  context.consume_budget(shape.c);
  Extents at(static_cast<std::size_t>(shape.c), 0);
  std::int64_t step = 1;  // in the constant
  for (std::size_t i = its.size(); i-- > 0;) {
    if (its[i] == 1) continue;
    const Axis& axis = x.view[i + rank - its.size()];
    if (its[i] != extent(axis)) return std::nullopt;
    for (std::size_t k = axis.size(); k-- > 0;) {
      const OnnxFactor factor = axis[k];
      if (factor.stride < shape.plane() || factor.extent * factor.stride > shape.image()) return std::nullopt;
      const std::int64_t stride = factor.stride / shape.plane();
      for (std::size_t c = 0; c < at.size(); ++c) at[c] += static_cast<std::int64_t>(c) / stride % factor.extent * step;
      step *= factor.extent;
    }
  }
  return at;
}

bool is_power_of_2(double number) {
  int exponent = 0;
  return std::abs(std::frexp(number, &exponent)) == 0.5;
}

/// What a node with a constant does to the numbers so far. False, and nothing done, where no scale and shift does it,
/// or does it with digits lost: (x - mean) / deviation is not x / deviation - mean / deviation.
bool take(const NodeContext& context, const DynamicValue& x, const NodeContext::Arithmetic& next, Numbers& numbers) {
  const std::string_view op = next.node.node().op_type;
  const Constant& constant = *next.constant;
  if ((op == "Div" && next.at == 0) || constant.extents.size() > x.view.size() || constant.count() < 1) return false;
  Extents elements = {0};
  if (constant.count() > 1) {
    const std::optional<Extents> found =
        elements_by_channel(context, x, aligned(next.node, context.opset(), constant.extents, x.view.size()));
    if (!found) return false;
    elements = *found;
  }
  const auto number_of = [&](std::size_t c) {
    const double number = constant.at(elements[elements.size() == 1 ? 0 : c]);
    return constant.extents.empty() && constant.origin != Origin::parameter ? text_number(number) : number;
  };
  const bool is_factor = op == "Mul" || op == "Div";
  for (std::size_t c = 0; c < std::max(elements.size(), numbers.shift.size()); ++c) {
    const bool is_shifted = numbers.shift[numbers.shift.size() == 1 ? 0 : c] != 0;
    if (is_shifted && !(is_factor && is_power_of_2(number_of(c)))) return false;
  }
  if (elements.size() > numbers.scale.size()) {
    context.consume_budget(2 * x.value.shape().c);
    numbers.scale.resize(elements.size(), numbers.scale[0]);
    numbers.shift.resize(elements.size(), numbers.shift[0]);
  }
  for (std::size_t c = 0; c < numbers.scale.size(); ++c) {
    const double number = number_of(c);
    double &scale = numbers.scale[c], &shift = numbers.shift[c];
    if (op == "Add") shift += number;
    if (op == "Sub") shift -= number;
    if (op == "Sub" && next.at == 0) scale = -scale, shift = -shift;
    if (op == "Mul") scale *= number;
    if (op == "Div") scale /= number;
    if (is_factor && shift != 0) shift = op == "Mul" ? shift * number : shift / number;  // 0 stays 0, also over 0
  }
  return true;
}

/// Whether an op can train the constant: one number, or exactly one for each channel.
bool is_trainable(const NodeContext& context, const DynamicValue& x, const NodeContext::Arithmetic& node) {
  const Constant& its = *node.constant;
  if (node.node.node().op_type == "Div") return false;
  return its.count() == 1 ||
         (its.count() == x.value.shape().c && its.extents.size() <= x.view.size() &&
          elements_by_channel(context, x, aligned(node.node, context.opset(), its.extents, x.view.size())));
}

template <class Each>
void import_each(NodeContext& context) {
  context.result_of(Each{}, context.dynamic(0));
}

void import_sigmoid(NodeContext& context) {
  context.dynamic(0);  // before the Mul is marked as done
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

/// A limit of one number, as it was written.
double limit_of(const NodeContext& context, std::size_t input, const std::string& what) {
  const Constant& number = context.constant(input, what);
  if (number.count() != 1) throw Refusal{what + " has " + text(number.extents) + " numbers: limit by one number"};
  return text_number(number.at(0));
}

/// The operand between two limits, of which the high one wins.
void clip(NodeContext& context, std::size_t operand, double low, double high) {
  constexpr double none = std::numeric_limits<float>::max();  // how exporters write that there is no limit
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

/// Max and Min of a value and numbers: a limit.
void import_limit(NodeContext& context) {
  const bool is_max = context.attributes().node().op_type == "Max";
  double limit = is_max ? -infinity : infinity;
  std::optional<std::size_t> operand;
  for (std::size_t i = 0; i < context.inputs(); ++i) {
    if (!context.is_constant(i) && !operand) {
      operand = i;
    } else {
      const double number = limit_of(context, i, "what it compares with");
      limit = is_max ? std::max(limit, number) : std::min(limit, number);
    }
  }
  is_max ? clip(context, *operand, limit, infinity) : clip(context, *operand, -infinity, limit);
}

void import_sum(NodeContext& context) { add_all(context, false); }

/// A value and a constant: one op with numbers by channel, or one for all. Nodes after it that do alike are done with
/// it: any of fixed numbers; but where a constant trains, only a factor and then a shift.
void import_arithmetic(NodeContext& context) {
  const Attributes& node = context.attributes();
  const std::string_view op = node.node().op_type;
  const std::size_t at = context.is_constant(1) ? 1 : 0;
  if (!context.is_constant(at)) {
    if (squared(context) || divided_by_squares(context)) return;
    if (op == "Mul") return multiply(context);
    if (op == "Add" || op == "Sub") return add_all(context, op == "Sub");
    throw Refusal{"both operands are computed: only division by a constant is read"};
  }
  if (squares_and_number(context, at)) return;
  const DynamicValue& x = context.dynamic(1 - at);
  if (op == "Div" && !is_floating(x.type))
    throw Refusal{"it divides whole numbers: divide before they go into the network"};
  const Constant& constant = context.constant(at, "its operand");
  if (at == 0 && op == "Div")
    throw Refusal{"it divides a constant by a computed value: only division by a constant is read"};

  Numbers numbers;
  WeightSource scale, shift;
  bool any_trains = false;
  int taken = 0;
  const auto take_one = [&](const NodeContext::Arithmetic& next) {
    const bool learns = context.learns(*next.constant, x), trains = learns && is_trainable(context, x, next);
    const bool is_factor = next.node.node().op_type == "Mul";
    const bool is_shift_of_factor =
        taken == 1 && op == "Mul" && next.node.node().op_type == "Add" && next.constant->count() == constant.count();
    if (taken > 0 && (any_trains || trains ? !is_shift_of_factor : learns)) return false;
    if (!take(context, x, next, numbers)) return false;
    const std::string_view name = next.node.node().inputs[next.at];
    const bool is_stated = context.origins_are_stated();
    if (learns ? !(trains && is_stated) : next.constant->origin == Origin::parameter && !is_stated)
      context.note(name, trains);
    if (trains) (is_factor ? scale : shift).value = name;
    any_trains = any_trains || trains;
    ++taken;
    return true;
  };
  if (!take_one({node, &constant, at})) {
    throw Refusal{"its constant of " + text(constant.extents) + " is not one number, or one for each channel, of " +
                      text(extents(x.view)),
                  true};
  }
  for (auto next = context.next_arithmetic(); next && is_floating(x.type); next = context.next_arithmetic()) {
    if (!take_one(*next)) break;
    context.fuse_next();
  }
  const auto all = [](const std::vector<double>& list, double number) {
    return std::ranges::count(list, number) == std::ssize(list);
  };
  if (!any_trains && all(numbers.scale, 1) && all(numbers.shift, 0)) return context.result(DynamicValue(x));
  const auto count = static_cast<std::int64_t>(numbers.scale.size());
  const ElementType type = any_trains ? x.type : constant.type;
  const Value y = context.append(ScaleShift{.by_channel = count > 1, .learned = any_trains}, {x.value}, context.name());
  context.weights(y, "scale", {count}, std::move(numbers.scale), type, scale);
  context.weights(y, "shift", {count}, std::move(numbers.shift), type, shift);
  context.result({.value = y, .view = x.view, .type = x.type});
}

void import_pow(NodeContext& context) {
  if (context.is_constant(1) && squares_and_number(context, 1)) return;
  const DynamicValue& x = context.dynamic(0);
  if (!context.is_constant(1) || limit_of(context, 1, "its exponent") != 2)
    throw Refusal{"powers other than a square are read in nn.LocalResponseNorm alone"};
  const Value y = context.append(Multiply{}, {x.value, x.value}, context.name());
  context.result({.value = y, .view = x.view, .type = x.type});
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
      {{"Add", "Div", "Mul", "Sub"}, import_arithmetic},
      {{"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}, import_random, false},
      {{"Cast", "CastLike"}, import_cast},
      {{"Clip"}, import_clip},
      {{"HardSigmoid"}, import_hard_sigmoid},
      {{"HardSwish"}, import_each<HardSwish>},
      {{"Max", "Min"}, import_limit},
      {{"Pow"}, import_pow},
      {{"Relu"}, import_each<Relu>},
      {{"Sigmoid"}, import_sigmoid},
      {{"Sum"}, import_sum},
      {{"Tanh"}, import_each<Tanh>}};
}

}  // namespace lamina::onnx
