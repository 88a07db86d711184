// Operators on constants. A uniform constant stays uniform where an operator only moves numbers.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "node_context.h"

namespace lamina::onnx {

Constant blank(const NodeContext& node, ElementType type, Extents extents) {
  const std::optional<std::int64_t> count = element_count(extents);
  if (!count) node.invalid("would make a tensor of " + text(extents));
  node.consume_budget(*count);
  return {.type = type, .extents = std::move(extents), .values = std::vector<double>(static_cast<std::size_t>(*count))};
}

Constant with_extents(const NodeContext& node, const Constant& x, Extents extents) {
  if (!x.uniform) node.consume_budget(x.count());
  if (!element_count(extents)) node.invalid("would make a tensor of " + text(extents));
  Constant y = x;
  y.extents = std::move(extents);
  return y;
}

namespace {

Axis factors_of(const Extents& extents, const Extents& strides) {
  Axis factors;
  for (std::size_t i = 0; i < extents.size(); ++i) factors.push_back({extents[i], strides[i]});
  return factors;
}

/// The elements of x from offset `first` on, by a stride in x for each axis of the result.
Constant stepped(const NodeContext& node, const Constant& x, Extents extents, const Extents& strides,
                 std::int64_t first) {
  if (x.uniform) return with_extents(node, x, std::move(extents));
  const Axis factors = factors_of(extents, strides);
  Constant y = blank(node, x.type, std::move(extents));
  std::size_t to = 0;
  for_each_place(factors, first, [&](std::int64_t from) { y.values[to++] = x.at(from); });
  return y;
}

Extents dense_strides(const Extents& extents) {
  Extents strides(extents.size(), 1);
  for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
  return strides;
}

/// A constant, seen with the extents `of`, broadcast to the extents `result`.
Constant spread(const NodeContext& node, const Constant& x, const Extents& of, const Extents& result) {
  const Extents own = dense_strides(of);
  Extents strides(result.size(), 0);
  for (std::size_t i = 0; i < of.size(); ++i)
    if (of[i] != 1) strides[result.size() - of.size() + i] = own[i];
  return stepped(node, x, result, strides, 0);
}

Constant identity(const NodeContext& node) { return with_extents(node, node.constant(0), node.constant(0).extents); }

Constant constant(const NodeContext& node) {
  if (const std::optional<TensorMessage> tensor = node.value("value").tensor) {
    Constant read = read_constant(*tensor, node.path(), node.where());
    std::uint64_t external_bytes = 0;
    if (!tensor->external) node.consume_budget(-stored_numbers(*tensor, node.path(), external_bytes));
    return read;
  }
  for (const std::string_view name : {"value_float", "value_floats", "value_int", "value_ints"}) {
    if (!node.has(name)) continue;
    const AttributeValue its = node.value(name);
    Constant y{.type = name.starts_with("value_f") ? ElementType::f32 : ElementType::i64, .extents = {}, .values = {}};
    y.values.assign(its.numbers.begin(), its.numbers.end());
    y.values.insert(y.values.end(), its.integers.begin(), its.integers.end());
    if (name.ends_with('s')) {
      y.extents = {y.count()};
    } else {  // the format omits a 0
      y.values = {its.number ? as_written(*its.number) : static_cast<double>(its.integer.value_or(0))};
    }
    return y;
  }
  throw Refusal{"its value is neither a tensor nor numbers"};
}

Constant constant_of_shape(const NodeContext& node) {
  Constant value{.type = ElementType::f32, .extents = {1}, .values = {0}};
  if (const std::optional<TensorMessage> tensor = node.value("value").tensor) {
    value = read_constant(*tensor, node.path(), node.where());
    if (value.values.size() != 1) node.invalid("has a value of " + text(value.extents) + " instead of one number");
  }
  value.uniform = true;
  return with_extents(node, value, node.list(node.constant(0)));
}

Constant shape_of(const NodeContext& node) { return shape_constant(node, node.constant(0).extents); }

Constant size_of_all(const NodeContext& node) {
  return {.type = ElementType::i64, .extents = {}, .values = {static_cast<double>(node.constant(0).count())}};
}

Constant regroup(const NodeContext& node) {
  const std::optional<Extents> list = node.list(list_name(node), 1);
  return with_extents(node, node.constant(0), regrouped(node, node.constant(0).extents, list));
}

Constant transpose(const NodeContext& node) {
  const Constant& x = node.constant(0);
  const Extents own = dense_strides(x.extents);
  Extents extents, strides;
  for (const std::size_t axis : permutation(node, x.extents.size())) {
    extents.push_back(x.extents[axis]);
    strides.push_back(own[axis]);
  }
  return stepped(node, x, extents, strides, 0);
}

Constant expand(const NodeContext& node) {
  Extents wanted = node.list(node.constant(1));
  if (!element_count(wanted)) node.invalid("expands to " + text(wanted));
  const Constant& all = node.constant(0);
  std::optional<Constant> image;
  if (node.constant(1).of_extents) image = node.one_image(all, wanted);
  const Constant& x = image ? *image : all;
  return spread(node, x, x.extents, broadcast(node, x.extents, wanted));
}

Constant gather(const NodeContext& node) {
  const Constant &x = node.constant(0), &at = node.constant(1);
  const std::size_t axis = axis_of(node, node.integer("axis", 0), x.extents.size());
  Extents extents(x.extents.begin(), x.extents.begin() + static_cast<std::ptrdiff_t>(axis));
  const std::int64_t outer = *element_count(extents);
  extents.insert(extents.end(), at.extents.begin(), at.extents.end());
  const Extents rest(x.extents.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.extents.end());
  extents.insert(extents.end(), rest.begin(), rest.end());
  const std::int64_t inner = *element_count(rest), rows = x.extents[axis];
  Constant y = blank(node, x.type, std::move(extents));
  std::size_t to = 0;
  for (std::int64_t o = 0; to < y.values.size() && o < outer; ++o) {
    for (std::int64_t i = 0; i < at.count(); ++i) {
      std::int64_t row = to_integer(at.at(i));
      if (row < 0) row += rows;
      if (row < 0 || row >= rows)
        node.invalid("takes the index " + std::to_string(row) + " of " + std::to_string(rows));
      for (std::int64_t r = 0; r < inner; ++r) y.values[to++] = x.at((o * rows + row) * inner + r);
    }
  }
  return y;
}

Constant slice(const NodeContext& node) {
  const Constant& x = node.constant(0);
  const std::vector<Range> ranges = node.slice_ranges(x.extents);
  const Extents own = dense_strides(x.extents);
  Extents extents, strides;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    extents.push_back(ranges[i].count);
    strides.push_back(own[i] * ranges[i].step);
    first += own[i] * ranges[i].first;
  }
  return stepped(node, x, extents, strides, first);
}

Constant concat(const NodeContext& node) {
  const Constant& first = node.constant(0);
  const std::size_t axis = axis_of(node, node.integer("axis", 1), first.extents.size());
  Extents extents = first.extents;
  extents[axis] = 0;
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    Extents others = node.constant(i).extents;
    if (others.size() != extents.size()) node.invalid("joins " + text(first.extents) + " and " + text(others));
    if (others[axis] > (std::int64_t{1} << 62) - extents[axis]) node.invalid("joins more than memory can hold");
    extents[axis] += others[axis];
    others[axis] = first.extents[axis];
    if (others != first.extents)
      node.invalid("joins " + text(first.extents) + " and " + text(node.constant(i).extents));
  }
  Constant y = blank(node, first.type, extents);
  const Extents strides = dense_strides(extents);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    const Constant& x = node.constant(i);
    std::int64_t from = 0;
    for_each_place(factors_of(x.extents, strides), begin * strides[axis],
                   [&](std::int64_t to) { y.values[static_cast<std::size_t>(to)] = x.at(from++); });
    begin += x.extents[axis];
  }
  return y;
}

using OfOne = double (*)(double);
using OfTwo = double (*)(double, double);

/// Applies a function to each element.
Function each(OfOne of) {
  return [of](const NodeContext& node) {
    Constant y = with_extents(node, node.constant(0), node.constant(0).extents);
    for (double& value : y.values) value = of(value);
    return y;
  };
}

Constant pairwise(const NodeContext& node, const Constant& a, const Constant& b, OfTwo of) {
  const Extents of_b = aligned(node, node.opset(), b.extents, a.extents.size());
  const Extents extents = broadcast(node, a.extents, of_b);
  Constant y = spread(node, a, a.extents, extents);
  const Constant other = spread(node, b, of_b, extents);
  if (!other.uniform) y.values.resize(other.values.size(), y.values[0]), y.uniform = false;
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    y.values[i] = of(y.values[i], other.at(static_cast<std::int64_t>(i)));
    if (!is_floating(a.type)) y.values[i] = std::trunc(y.values[i]);
  }
  return y;
}

/// Applies the function to the first two operands, then to the result and the next operand, and so on. With `least` 1
/// there may be a single operand, which is then the result.
Function join(OfTwo of, std::size_t least = 2) {
  return [of, least](const NodeContext& node) {
    if (node.inputs() == 1 && least == 1) return identity(node);
    Constant y = pairwise(node, node.constant(0), node.constant(1), of);
    for (std::size_t i = 2; i < node.inputs(); ++i) y = pairwise(node, y, node.constant(i), of);
    return y;
  };
}

/// Reduces the given axes, or all: result = join_one(result, element) from `start` on, then finish(result, elements).
Function reduction(double start, OfTwo join_one, OfTwo finish) {
  return [=](const NodeContext& node) {
    const Constant& x = node.constant(0);
    const std::vector<char> over = node.reduced_axes(x.extents.size());
    if (!over.empty() && std::ranges::count(over, 1) == 0) return identity(node);
    Extents kept = x.extents, result;
    for (std::size_t i = 0; i < over.size(); ++i) {
      if (over[i]) kept[i] = 1;
      if (!over[i] || node.integer("keepdims", 1) != 0) result.push_back(kept[i]);
    }
    Constant place = blank(node, ElementType::i64, kept), y = blank(node, x.type, result);
    std::iota(place.values.begin(), place.values.end(), 0.0);
    place = spread(node, place, kept, x.extents);
    std::fill(y.values.begin(), y.values.end(), start);
    for (std::size_t i = 0; i < place.values.size(); ++i) {
      double& joined_so_far = y.values[static_cast<std::size_t>(place.values[i])];
      joined_so_far = join_one(joined_so_far, x.at(static_cast<std::int64_t>(i)));
    }
    const auto sums = static_cast<double>(y.values.size());
    for (double& value : y.values) value = finish(value, static_cast<double>(x.count()) / sums);
    return y;
  };
}

Constant where(const NodeContext& node) {
  Extents extents;
  for (std::size_t i = 0; i < 3; ++i) extents = broadcast(node, extents, node.constant(i).extents);
  const auto operand = [&](std::size_t i) { return spread(node, node.constant(i), node.constant(i).extents, extents); };
  const Constant which = operand(0), yes = operand(1), no = operand(2);
  Constant y = blank(node, yes.type, extents);
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    y.values[i] = which.at(at) != 0 ? yes.at(at) : no.at(at);
  }
  return y;
}

double sum_of(double a, double b) { return a + b; }
double product_of(double a, double b) { return a * b; }
double first_of(double a, double) { return a; }

/// The remainder, with the sign of b or, with fmod, of a.
Constant modulo(const NodeContext& node) {
  if (node.integer("fmod", 0) != 0) return join([](double a, double b) { return std::fmod(a, b); })(node);
  return join([](double a, double b) { return a - std::floor(a / b) * b; })(node);
}

}  // namespace

const Function* find_folding(std::string_view op_type) {
  static const std::map<std::string_view, Function> all = {
      {"Identity", identity},
      {"Constant", constant},
      {"ConstantOfShape", constant_of_shape},
      {"Shape", shape_of},
      {"Size", size_of_all},
      {"Reshape", regroup},
      {"Flatten", regroup},
      {"Squeeze", regroup},
      {"Unsqueeze", regroup},
      {"Transpose", transpose},
      {"Expand", expand},
      {"Gather", gather},
      {"Slice", slice},
      {"Concat", concat},
      {"Cast", fold_cast},
      {"CastLike", fold_cast},
      {"Range", fold_range},
      {"Where", where},
      {"BatchNormalization", fold_batch_norm},
      {"Clip", fold_clip},
      {"MatMul", fold_matmul},
      {"Neg", each([](double a) { return -a; })},
      {"Abs", each([](double a) { return std::abs(a); })},
      {"Sqrt", each([](double a) { return std::sqrt(a); })},
      {"Reciprocal", each([](double a) { return 1 / a; })},
      {"Floor", each([](double a) { return std::floor(a); })},
      {"Ceil", each([](double a) { return std::ceil(a); })},
      {"Not", each([](double a) { return a == 0 ? 1.0 : 0.0; })},
      {"Exp", each([](double a) { return std::exp(a); })},
      {"Sigmoid", each([](double a) { return 1 / (1 + std::exp(-a)); })},
      {"Relu", each([](double a) { return a < 0 ? 0.0 : a; })},
      {"Tanh", each([](double a) { return std::tanh(a); })},
      {"Add", join(sum_of)},
      {"Sub", join([](double a, double b) { return a - b; })},
      {"Mul", join(product_of)},
      {"Div", join([](double a, double b) { return a / b; })},
      {"Pow", join([](double a, double b) { return std::pow(a, b); })},
      {"Mod", modulo},
      {"Equal", join([](double a, double b) { return a == b ? 1.0 : 0.0; })},
      {"Max", join([](double a, double b) { return a >= b || std::isnan(a) ? a : b; }, 1)},
      {"Min", join([](double a, double b) { return a <= b || std::isnan(a) ? a : b; }, 1)},
      {"Sum", join(sum_of, 1)},
      {"ReduceL2",
       reduction(
           0, [](double sum, double a) { return sum + a * a; }, [](double a, double) { return std::sqrt(a); })},
      {"ReduceMean", reduction(0, sum_of, [](double sum, double count) { return sum / count; })},
      {"ReduceSum", reduction(0, sum_of, first_of)},
      {"ReduceProd", reduction(1, product_of, first_of)},
  };
  const auto found = all.find(op_type);
  return found == all.end() ? nullptr : &found->second;
}

void NodeContext::fold() {
  const std::string_view op = node().op_type;
  const Function* function = find_folding(op);
  if (function == nullptr)
    throw Refusal{"it is not computed on constants: let onnxruntime fold it before (docs/onnx.md)"};
  Constant folded = (*function)(*this);
  folded.origin = Origin::number;
  folded.source = {};
  for (std::size_t i = 0; i < inputs(); ++i) {
    if (!has(i)) continue;
    const Constant& x = constant(i);
    folded.of_extents |= x.of_extents;
    if (!is_floating(x.type) || op == "Shape" || op == "Size" || (op == "CastLike" && i > 0)) continue;
    folded.origin = std::max(folded.origin, x.origin);
    if (folded.source.empty()) folded.source = x.source;
  }
  result(std::move(folded));
}

}  // namespace lamina::onnx
