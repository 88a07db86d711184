// The operators that are folded on constants. A uniform constant stays one where its numbers do not matter.

#include "folding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "aligned.h"
#include "fold.h"
#include "lamina/error.h"
#include "view.h"

namespace lamina::onnx {

std::int64_t counted(const Folding& f, const Extents& extents) {
  const std::optional<std::int64_t> count = element_count(extents);
  if (!count) f.node.invalid("would make a tensor of " + text(extents));
  return *count;
}

Constant blank(const Folding& f, ElementType type, Extents extents) {
  const std::int64_t count = counted(f, extents);
  f.consume_budget(count);
  return {.type = type,
          .extents = std::move(extents),
          .values = std::vector<double>(static_cast<std::size_t>(count)),
          .uniform = false};
}

Constant with_extents(const Folding& f, const Constant& x, Extents extents) {
  if (!x.uniform) f.consume_budget(x.count());
  Constant y = x;
  y.extents = std::move(extents);
  return y;
}

namespace {

/// The elements of x at offsets that each axis of the result steps by.
Constant stepped(const Folding& f, const Constant& x, Extents extents, const Extents& strides, std::int64_t first) {
  if (x.uniform) {
    counted(f, extents);
    return {.type = x.type, .extents = std::move(extents), .values = x.values, .uniform = true};
  }
  Constant y = blank(f, x.type, std::move(extents));
  Extents at(y.extents.size(), 0);
  std::int64_t from = first;
  for (double& value : y.values) {
    value = x.values[static_cast<std::size_t>(from)];
    for (std::size_t i = at.size(); i-- > 0;) {
      from += strides[i];
      if (++at[i] < y.extents[i]) break;
      from -= strides[i] * y.extents[i];
      at[i] = 0;
    }
  }
  return y;
}

Extents dense_strides(const Extents& extents) {
  Extents strides(extents.size(), 1);
  for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
  return strides;
}

/// Strides of x in a result that it is broadcast to.
Extents broadcast_strides(const Extents& of, const Extents& result) {
  const Extents own = dense_strides(of);
  Extents strides(result.size(), 0);
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (of[i] != 1) strides[result.size() - of.size() + i] = own[i];
  }
  return strides;
}

Constant identity(const Folding& f) { return with_extents(f, f.in(0), f.in(0).extents); }

Constant constant(const Folding& f) {
  const auto list = [&](ElementType type, std::vector<double> values, bool scalar) {
    const auto count = static_cast<std::int64_t>(values.size());
    return Constant{
        .type = type, .extents = scalar ? Extents{} : Extents{count}, .values = std::move(values), .uniform = false};
  };
  if (const std::optional<TensorMessage> tensor = f.node.value("value").tensor) {
    Constant read = read_constant(*tensor, f.model, f.node.where());
    std::uint64_t external_bytes = 0;
    if (!tensor->external) f.consume_budget(-stored_numbers(*tensor, f.model, external_bytes));
    return read;
  }
  if (f.node.has("value_float")) return list(ElementType::f32, {f.node.number("value_float", 0)}, true);
  if (f.node.has("value_floats")) {
    const std::vector<float> numbers = f.node.value("value_floats").numbers;
    return list(ElementType::f32, {numbers.begin(), numbers.end()}, false);
  }
  if (f.node.has("value_int")) {
    return list(ElementType::i64, {static_cast<double>(f.node.integer("value_int", 0))}, true);
  }
  if (const std::optional<Extents> ints = f.node.integers("value_ints")) {
    return list(ElementType::i64, {ints->begin(), ints->end()}, false);
  }
  throw Refusal{"its value is neither a tensor nor numbers"};
}

Constant constant_of_shape(const Folding& f) {
  Constant value{.type = ElementType::f32, .extents = {1}, .values = {0}, .uniform = false};
  if (const std::optional<TensorMessage> tensor = f.node.value("value").tensor) {
    value = read_constant(*tensor, f.model, f.node.where());
    if (value.values.size() != 1) f.node.invalid("has a value of " + text(value.extents) + " instead of one number");
  }
  value.extents = f.node.list(f.in(0));
  counted(f, value.extents);
  value.uniform = true;
  return value;
}

Constant shape_of(const Folding& f) { return shape_constant(f.node, f.in(0).extents); }

Constant size_of_all(const Folding& f) {
  return {.type = ElementType::i64, .extents = {}, .values = {static_cast<double>(f.in(0).count())}, .uniform = false};
}

Constant regroup(const Folding& f) {
  const std::optional<Extents> list = f.attribute_or_input(list_name(f.node), 1);
  return with_extents(f, f.in(0), regrouped(f.node, f.in(0).extents, list));
}

Constant transpose(const Folding& f) {
  const Constant& x = f.in(0);
  const Extents own = dense_strides(x.extents);
  Extents extents, strides;
  for (const std::size_t axis : permutation(f.node, x.extents.size())) {
    extents.push_back(x.extents[axis]);
    strides.push_back(own[axis]);
  }
  return stepped(f, x, extents, strides, 0);
}

Constant expand(const Folding& f) {
  const Constant& x = f.in(0);
  Extents wanted = f.node.list(f.in(1));
  if (!element_count(wanted)) f.node.invalid("expands to " + text(wanted));
  wanted = broadcast(f.node, x.extents, wanted);
  return stepped(f, x, wanted, broadcast_strides(x.extents, wanted), 0);
}

Constant gather(const Folding& f) {
  const Constant &x = f.in(0), &at = f.in(1);
  const std::size_t axis = axis_of(f.node, f.node.integer("axis", 0), x.extents.size());
  Extents extents(x.extents.begin(), x.extents.begin() + static_cast<std::ptrdiff_t>(axis));
  const std::int64_t outer = *element_count(extents);
  extents.insert(extents.end(), at.extents.begin(), at.extents.end());
  const Extents rest(x.extents.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.extents.end());
  extents.insert(extents.end(), rest.begin(), rest.end());
  const std::int64_t inner = *element_count(rest), rows = x.extents[axis];
  Constant y = blank(f, x.type, std::move(extents));
  std::size_t to = 0;
  for (std::int64_t o = 0; to < y.values.size() && o < outer; ++o) {
    for (std::int64_t i = 0; i < at.count(); ++i) {
      std::int64_t row = to_integer(at.at(i));
      if (row < 0) row += rows;
      if (row < 0 || row >= rows)
        f.node.invalid("takes the index " + std::to_string(row) + " of " + std::to_string(rows));
      for (std::int64_t r = 0; r < inner; ++r) y.values[to++] = x.at((o * rows + row) * inner + r);
    }
  }
  return y;
}

Constant slice(const Folding& f) {
  const Constant& x = f.in(0);
  const Extents starts = f.attribute_or_input("starts", 1).value_or(Extents{});
  const Extents ends = f.attribute_or_input("ends", 2).value_or(Extents{});
  const std::vector<Range> ranges =
      slice_ranges(f.node, x.extents, starts, ends, f.attribute_or_input("axes", 3), f.whole(4));
  const Extents own = dense_strides(x.extents);
  Extents extents, strides;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    extents.push_back(ranges[i].count);
    strides.push_back(own[i] * ranges[i].step);
    first += own[i] * ranges[i].first;
  }
  return stepped(f, x, extents, strides, first);
}

Constant concat(const Folding& f) {
  const Constant& first = f.in(0);
  const std::size_t axis = axis_of(f.node, f.node.integer("axis", 1), first.extents.size());
  Extents extents = first.extents;
  extents[axis] = 0;
  for (std::size_t i = 0; i < f.inputs.size(); ++i) {
    Extents others = f.in(i).extents;
    if (others.size() != extents.size()) f.node.invalid("joins " + text(first.extents) + " and " + text(others));
    if (others[axis] > (std::int64_t{1} << 62) - extents[axis]) {
      f.node.invalid("joins more than memory can hold");
    }
    extents[axis] += others[axis];
    others[axis] = first.extents[axis];
    if (others != first.extents) f.node.invalid("joins " + text(first.extents) + " and " + text(f.in(i).extents));
  }
  Constant y = blank(f, first.type, extents);
  const auto middle = extents.begin() + static_cast<std::ptrdiff_t>(axis);
  const std::int64_t outer = *element_count({extents.begin(), middle}),
                     inner = *element_count({middle + 1, extents.end()});
  std::size_t to = 0;
  for (std::int64_t o = 0; to < y.values.size() && o < outer; ++o) {
    for (std::size_t i = 0; i < f.inputs.size(); ++i) {
      const std::int64_t run = f.in(i).extents[axis] * inner;
      for (std::int64_t r = 0; r < run; ++r) y.values[to++] = f.in(i).at(o * run + r);
    }
  }
  return y;
}

using OfOne = double (*)(double);
using OfTwo = double (*)(double, double);

/// The function of each element.
Function each(OfOne of) {
  return [of](const Folding& f) {
    Constant y = with_extents(f, f.in(0), f.in(0).extents);
    for (double& value : y.values) value = of(value);
    return y;
  };
}

Constant pairwise(const Folding& f, const Constant& a, const Constant& b, OfTwo of) {
  const Extents of_b = aligned(f.node, f.opset, b.extents, a.extents.size());
  const Extents extents = broadcast(f.node, a.extents, of_b);
  counted(f, extents);
  const auto result = [&](double left, double right) {
    const double value = of(left, right);
    return is_floating(a.type) ? value : std::trunc(value);
  };
  if (a.uniform && b.uniform) {
    return {.type = a.type, .extents = extents, .values = {result(a.values[0], b.values[0])}, .uniform = true};
  }
  Constant y = stepped(f, a, extents, broadcast_strides(a.extents, extents), 0);
  const Constant other = stepped(f, b, extents, broadcast_strides(of_b, extents), 0);
  if (y.uniform)
    y = {.type = y.type,
         .extents = extents,
         .values = std::vector<double>(other.values.size(), y.values[0]),
         .uniform = false};
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    y.values[i] = result(y.values[i], other.at(static_cast<std::int64_t>(i)));
  }
  return y;
}

/// The function of two operands, then of the result and the next one; with `least` 1, of one operand that operand.
Function join(OfTwo of, std::size_t least = 2) {
  return [of, least](const Folding& f) {
    if (f.inputs.size() == 1 && least == 1) return identity(f);
    Constant y = pairwise(f, f.in(0), f.in(1), of);
    for (std::size_t i = 2; i < f.inputs.size(); ++i) y = pairwise(f, y, f.in(i), of);
    return y;
  };
}

/// Over the axes that are given, or all: from `start` on join(result so far, element), then finish(result, elements).
Constant reduce(const Folding& f, double start, OfTwo join_one, OfTwo finish) {
  const Constant& x = f.in(0);
  const std::optional<Extents> axes = f.attribute_or_input("axes", 1);
  if (f.node.integer("noop_with_empty_axes", 0) != 0 && (!axes || axes->empty())) return identity(f);
  std::vector<char> over(x.extents.size(), !axes || axes->empty());
  for (const std::int64_t axis : axes.value_or(Extents{})) over[axis_of(f.node, axis, over.size())] = 1;
  Extents kept = x.extents, result;
  for (std::size_t i = 0; i < over.size(); ++i) {
    if (over[i]) kept[i] = 1;
    if (!over[i] || f.node.integer("keepdims", 1) != 0) result.push_back(kept[i]);
  }
  Constant place = blank(f, ElementType::i64, kept), y = blank(f, x.type, result);
  std::iota(place.values.begin(), place.values.end(), 0.0);
  place = stepped(f, place, x.extents, broadcast_strides(kept, x.extents), 0);
  std::fill(y.values.begin(), y.values.end(), start);
  for (std::size_t i = 0; i < place.values.size(); ++i) {
    double& joined_so_far = y.values[static_cast<std::size_t>(place.values[i])];
    joined_so_far = join_one(joined_so_far, x.at(static_cast<std::int64_t>(i)));
  }
  const auto sums = static_cast<double>(y.values.size());
  for (double& value : y.values) value = finish(value, static_cast<double>(x.count()) / sums);
  return y;
}

Constant where(const Folding& f) {
  const Extents extents = broadcast(f.node, broadcast(f.node, f.in(0).extents, f.in(1).extents), f.in(2).extents);
  const auto spread = [&](std::size_t i) {
    return stepped(f, f.in(i), extents, broadcast_strides(f.in(i).extents, extents), 0);
  };
  const Constant which = spread(0), yes = spread(1), no = spread(2);
  Constant y = blank(f, yes.type, extents);
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    y.values[i] = which.at(at) != 0 ? yes.at(at) : no.at(at);
  }
  return y;
}

double sum_of(double a, double b) { return a + b; }
double first_of(double a, double) { return a; }

Function reduction(double start, OfTwo join_one, OfTwo finish) {
  return [=](const Folding& f) { return reduce(f, start, join_one, finish); };
}

/// The remainder, with the sign of b or, with fmod, of a.
Constant modulo(const Folding& f) {
  if (f.node.integer("fmod", 0) != 0) return join([](double a, double b) { return std::fmod(a, b); })(f);
  return join([](double a, double b) { return a - std::floor(a / b) * b; })(f);
}

/// The function of each operator.
const std::map<std::string_view, Function>& functions() {
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
      {"Mul", join([](double a, double b) { return a * b; })},
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
      {"ReduceProd", reduction(
                         1, [](double a, double b) { return a * b; }, first_of)},
  };
  return all;
}

}  // namespace

Constant shape_constant(const Attributes& node, const Extents& all) {
  const auto rank = static_cast<std::int64_t>(all.size());
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t first = place(node.integer("start", 0)), end = std::max(first, place(node.integer("end", rank)));
  return {.type = ElementType::i64,
          .extents = {end - first},
          .values = {all.begin() + first, all.begin() + end},
          .uniform = false};
}

bool is_folded(std::string_view op_type) { return functions().contains(op_type); }

std::optional<Constant> fold(const Attributes& node, std::int64_t opset, const std::vector<const Constant*>& inputs,
                             const std::filesystem::path& model,
                             const std::function<void(std::int64_t)>& consume_budget) {
  const auto found = functions().find(node.node().op_type);
  if (found == functions().end()) return std::nullopt;
  Constant folded = found->second({node, opset, inputs, model, consume_budget});
  const std::string_view op = node.node().op_type;
  folded.origin = Origin::number;
  if (op != "Shape" && op != "Size" && op != "ConstantOfShape")
    for (std::size_t i = 0; i < (op == "CastLike" ? 1 : inputs.size()); ++i)
      if (inputs[i] != nullptr && is_floating(inputs[i]->type))
        folded.origin = std::max(folded.origin, inputs[i]->origin);
  return folded;
}

}  // namespace lamina::onnx
