// Sums, products, powers, and arithmetic with constants; PRelu.

#include <algorithm>
#include <cmath>

#include "lib/onnx/operators.h"

namespace lamina::onnx {
namespace {

/// y = scale x + shift, with a scale and a shift for each channel of the graph's value, or the same for all.
struct Numbers {
  std::vector<double> scale{1}, shift{0};
  bool learned = false;
  WeightSource scale_source{}, shift_source{};
};

/// Makes the result x with this scale and shift, by a ScaleShift or by the pending norm of x.
void result_of(NodeContext& context, const DynamicValue& x, Numbers numbers, ElementType type, bool of_norm = false) {
  const std::int64_t count = std::ssize(numbers.scale);
  Op op = ScaleShift{.by_channel = count > 1, .learned = numbers.learned};
  if (of_norm) {
    GroupNorm norm = x.norm->op;
    norm.affine = true;
    op = norm;
  }
  const Value y = context.append(op, {x.value}, of_norm ? x.norm->name : context.name());
  context.weights(y, of_norm ? "weight" : "scale", {count}, std::move(numbers.scale), type, numbers.scale_source);
  context.weights(y, of_norm ? "bias" : "shift", {count}, std::move(numbers.shift), type, numbers.shift_source);
  context.result({.value = y, .view = x.view, .type = x.type});
}

/// The value with `rank` axes. Axes along which an Expand repeats it have one element again.
DynamicValue unexpanded(DynamicValue x, std::size_t rank) {
  for (Axis& axis : x.view)
    if (axis.size() == 1 && is_expanded({axis})) axis.clear();
  x.view.insert(x.view.begin(), rank - x.view.size(), Axis{});
  return x;
}

/// Labels under which both values broadcast to y along each axis of the graph; nothing if there are none. Labels that
/// fit the order of both values in memory are preferred.
std::optional<AxisLabels> labels_of(const DynamicValue& a, const DynamicValue& b, const Extents& y) {
  const std::size_t rank = y.size();
  std::vector<AxisLabels> all = {usual_labels(rank), channels_last(rank)};
  if (rank > 4) all.push_back("n" + std::string(rank - 3, 'c') + "hw");
  if (rank == 3) all.push_back("hnc");  // steps first
  const auto fits = [&](const AxisLabels& labels) {
    const Shape of_a = layout_of(extents(a.view), labels).shape, of_b = layout_of(extents(b.view), labels).shape;
    const Shape whole = layout_of(y, labels).shape;
    const auto fit = [](int one, int other, int both) {
      return std::max(one, other) == both && (std::min(one, other) == both || std::min(one, other) == 1);
    };
    return of_a.n == of_b.n && fit(of_a.c, of_b.c, whole.c) && fit(of_a.h, of_b.h, whole.h) &&
           fit(of_a.w, of_b.w, whole.w);
  };
  const auto is_in_order = [](const DynamicValue& x, const AxisLabels& labels) {
    const GraphLayout layout = layout_of(extents(x.view), labels);
    return layout.view == x.view && layout.shape == x.value.shape();
  };
  std::erase_if(all, [&](const AxisLabels& labels) { return !fits(labels); });
  if (all.empty()) return std::nullopt;
  const auto found = std::ranges::find_if(
      all, [&](const AxisLabels& labels) { return is_in_order(a, labels) && is_in_order(b, labels); });
  return found == all.end() ? all.front() : *found;
}

/// The index of the constant's element for each channel of x, with the constant aligned at the last axis of x. Nothing
/// if the element differs within a channel.
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

/// Joins a node with a constant to the numbers so far. Does nothing and returns false if no scale and shift express the
/// node, or if they would lose digits: (x - mean) / deviation is not x / deviation - mean / deviation.
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
    if (is_factor && shift != 0) shift = op == "Mul" ? shift * number : shift / number;  // 0 / 0 stays 0
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

/// A sum of values with one shape and one order of axes is a single op.
void import_sum(NodeContext& context) {
  const DynamicValue& first = context.spread(0);
  std::vector<Value> operands;
  for (std::size_t i = 0; i < context.inputs(); ++i) {
    const DynamicValue& x = context.spread(i);
    if (x.view == first.view && x.value.shape() == first.value.shape()) operands.push_back(x.value);
  }
  if (context.inputs() < 3 || operands.size() < context.inputs()) return join_all(context);
  context.result({.value = context.append(Add{}, operands, context.name()), .view = first.view, .type = first.type});
}

/// A value and a constant: one op ScaleShift. Arithmetic with constants that follows the node is fused into the op: any
/// number of fixed constants or, if a constant trains, one factor and then one shift. If a constant differs within a
/// channel, all elements of an image become channels.
void import_arithmetic(NodeContext& context) {
  const std::string_view op = context.node().op_type;
  if (context.inputs() != 2) context.invalid("has " + std::to_string(context.inputs()) + " operands instead of 2");
  const std::size_t at = context.is_constant(1) ? 1 : 0;
  const auto demand_floating = [&](ElementType type) {
    if (op == "Div" && !is_floating(type))
      throw Refusal{"it divides whole numbers: divide before they go into the network"};
  };
  if (!context.is_constant(at)) {
    if (context.input_name(0) == context.input_name(1) && takes_gelu(context, 0)) return;
    if (squared(context) || divided_by_squares(context)) return;
    demand_floating(context.spread(0).type);
    return join_all(context);
  }
  if (squares_and_number(context, at) || takes_gelu(context, 1 - at)) return;
  DynamicValue x = context.dynamic(1 - at, keep::norm);
  demand_floating(x.type);
  const Constant& constant = context.constant(at, "its operand");
  if (at == 0 && op == "Div")
    throw Refusal{"it divides a constant by a computed value: only division by a constant is read"};

  Numbers numbers;
  int taken = 0;
  const auto take_one = [&](const NodeContext::Arithmetic& next) {
    const bool of_norm = x.norm != nullptr, of_weights = next.constant->origin != Origin::number;
    const bool learns = of_norm ? of_weights : context.learns(*next.constant, x);
    const bool trains = learns && is_trainable(context, x, next);
    const bool is_factor = next.node.node().op_type == "Mul";
    const bool is_shift_of_factor =
        taken == 1 && op == "Mul" && next.node.node().op_type == "Add" && next.constant->count() == constant.count();
    if (taken > 0 && (numbers.learned || trains ? !is_shift_of_factor : learns)) return false;
    if (!take(context, x, next, numbers)) return false;
    const std::string_view name = next.node.node().inputs[next.at];
    const bool is_stated = context.origins_are_stated();
    if (!of_norm && (learns ? !(trains && is_stated) : next.constant->origin == Origin::parameter && !is_stated))
      context.note(name, trains);
    if (trains) (is_factor ? numbers.scale_source : numbers.shift_source).value = name;
    numbers.learned = numbers.learned || trains;
    ++taken;
    return true;
  };
  if (!take_one({context, &constant, at})) {
    x = as_channels(context, context.dynamic(1 - at), context.name() + ".x");
    if (!take_one({context, &constant, at}))
      throw Refusal{"its constant of " + text(constant.extents) + " is not one number, or numbers for each image, of " +
                        text(extents(x.view)),
                    true};
  }
  for (auto next = context.next_arithmetic(); next && is_floating(x.type); next = context.next_arithmetic()) {
    if (!take_one(*next)) break;
    context.fuse_next();
  }
  if (!numbers.learned && all_are(numbers.scale, 1.0) && all_are(numbers.shift, 0.0))
    return context.result(DynamicValue(x));
  const ElementType type = numbers.learned ? x.type : constant.type;
  const bool of_norm = x.norm && !x.norm->made && std::ssize(numbers.scale) == x.value.shape().c;
  if (x.norm && !of_norm) x = context.dynamic(1 - at);
  result_of(context, x, std::move(numbers), type, of_norm);
}

void import_negation(NodeContext& context) {
  const DynamicValue& x = context.dynamic(0);
  result_of(context, x, {.scale = {-1}}, x.type);
}

void import_pow(NodeContext& context) {
  if (context.is_constant(1) && squares_and_number(context, 1)) return;
  const DynamicValue& x = context.dynamic(0);
  const double exponent = limit_of(context, 1, "its exponent");
  if (exponent == 0) throw Refusal{"its exponent is 0: use a constant"};
  if (takes_gelu(context, 0)) return;
  if (context.constant(1).origin == Origin::parameter) context.note(context.input_name(1), false);
  context.result_of(Pointwise{lamina::Function::pow, exponent}, x);
}

/// The slopes are weights: one, or one for each channel. Before opset 7 they have no further axes.
void import_prelu(NodeContext& context) {
  const DynamicValue& x = context.dynamic(0);
  const Constant& slope = context.constant(1, "its slope");
  Extents its = slope.extents;
  if (context.opset() < 7 && slope.count() > 1) its.resize(std::max<std::size_t>(x.view.size(), 2) - 1, 1);
  const std::optional<Extents> elements = elements_by_channel(context, x, its);
  if (!elements || (slope.count() != 1 && slope.count() != x.value.shape().c))
    throw Refusal{"its slope of " + text(slope.extents) + " is not one number, or one for each channel, of " +
                      text(extents(x.view)),
                  true};
  std::vector<double> weight;
  for (std::int64_t c = 0; c < slope.count(); ++c) weight.push_back(slope.at((*elements)[static_cast<std::size_t>(c)]));
  WeightSource source;
  // For each use of the slopes, exporters write an Unsqueeze before the node.
  if (slope.origin != Origin::number) source.value = slope.source.empty() ? context.input_name(1) : slope.source;
  const Value y = context.result_of(PRelu{.by_channel = slope.count() > 1}, x);
  context.weights(y, "weight", {slope.count()}, std::move(weight), slope.type, source);
}

}  // namespace

DynamicValue joined(NodeContext& context, BinaryFunction function, DynamicValue a, DynamicValue b,
                    const std::string& name) {
  View view = a.view;
  if (a.view != b.view || a.value.shape() != b.value.shape()) {
    b.view.resize(aligned(context, context.opset(), extents(b.view), a.view.size()).size());
    const Extents of_a = extents(a.view), of_b = extents(b.view);
    Extents y(std::max(of_a.size(), of_b.size()), 1);
    for (const Extents* its : {&of_a, &of_b})
      for (std::size_t i = 1; i <= its->size(); ++i)
        y[y.size() - i] = std::max(y[y.size() - i], (*its)[its->size() - i]);
    a = unexpanded(std::move(a), y.size());
    b = unexpanded(std::move(b), y.size());
    const std::optional<AxisLabels> labels = labels_of(a, b, y);
    if (!labels)
      throw Refusal{"it joins " + text(of_a) + " and " + text(of_b) +
                    ": images need to be at one axis of both, and other extents equal, or 1 in one of them"};
    a = in_order(context, a, *labels, name + ".a");
    b = in_order(context, b, *labels, name + ".b");
    view = layout_of(y, *labels).view;
  }
  const bool adds = function == BinaryFunction::add && a.value.shape() == b.value.shape();
  const Value y = context.append(adds ? Op(Add{}) : Op(Binary{function}), {a.value, b.value}, name);
  return {.value = y, .view = std::move(view), .type = a.type};
}

void join_all(NodeContext& context) {
  const auto function = enumerator_of<BinaryFunction>(context.node().op_type, binary_function_names);
  DynamicValue y = context.spread(0);
  for (std::size_t i = 1; i < context.inputs(); ++i) {
    const std::string part = i + 1 < context.inputs() ? ".x" + std::to_string(i) : "";
    y = joined(context, function.value_or(BinaryFunction::add), std::move(y), context.spread(i), context.name() + part);
  }
  context.result(std::move(y));
}

Operators arithmetic_operators() {
  return {{{"Add", "Div", "Mul", "Sub"}, import_arithmetic},
          {{"Neg"}, import_negation},
          {{"PRelu"}, import_prelu},
          {{"Pow"}, import_pow},
          {{"Sum"}, import_sum}};
}

}  // namespace lamina::onnx
