// Shape inference, for constants and for computed values.

#include <algorithm>
#include <numeric>

#include "node_context.h"

namespace lamina::onnx {

Constant shape_constant(const Attributes& node, const Extents& all) {
  const auto rank = static_cast<std::int64_t>(all.size());
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t first = place(node.integer("start", 0)), end = std::max(first, place(node.integer("end", rank)));
  return {.type = ElementType::i64, .extents = {end - first}, .values = {all.begin() + first, all.begin() + end}};
}

Extents reshape_extents(const Attributes& node, const Extents& of, const Extents& wanted) {
  const bool zeros = node.integer("allowzero", 0) != 0;
  Extents result = wanted;
  std::optional<std::size_t> inferred;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 0 && !zeros) {
      if (i >= of.size()) node.invalid("copies the extent of axis " + std::to_string(i) + " of " + text(of));
      result[i] = of[i];
    } else if (result[i] == -1 && !inferred) {
      inferred = i;
      result[i] = 1;
    }
  }
  const std::optional<std::int64_t> before = element_count(of), after = element_count(result);
  if (!before || !after) node.invalid("reshapes " + text(of) + " to " + text(wanted));
  if (inferred && *after > 0) result[*inferred] = *before / *after;
  if (element_count(result) != before) node.invalid("reshapes " + text(of) + " to " + text(wanted));
  return result;
}

namespace {

Extents flattened(const Attributes& node, const Extents& of) {
  const auto rank = static_cast<std::int64_t>(of.size());
  std::int64_t axis = node.integer("axis", 1);
  if (axis < -rank || axis > rank) node.invalid("flattens " + text(of) + " at axis " + std::to_string(axis));
  if (axis < 0) axis += rank;
  const auto middle = of.begin() + axis;
  return {*element_count({of.begin(), middle}), *element_count({middle, of.end()})};
}

Extents squeezed(const Attributes& node, const Extents& of, const std::optional<Extents>& axes) {
  std::vector<char> drop(of.size(), 0);
  for (std::size_t i = 0; i < of.size(); ++i) drop[i] = !axes && of[i] == 1;
  for (const std::int64_t axis : axes.value_or(Extents{})) drop[axis_of(node, axis, of.size())] = 1;
  Extents result;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (drop[i] && of[i] != 1) node.invalid("squeezes axis " + std::to_string(i) + " of " + text(of));
    if (!drop[i]) result.push_back(of[i]);
  }
  return result;
}

Extents unsqueezed(const Attributes& node, const Extents& of, const Extents& axes) {
  constexpr std::size_t most = 64;
  if (axes.size() > most) node.invalid("adds " + std::to_string(axes.size()) + " axes");
  std::vector<char> is_new(of.size() + axes.size(), 0);
  for (const std::int64_t axis : axes) {
    char& taken = is_new[axis_of(node, axis, is_new.size())];
    if (taken) node.invalid("adds axis " + std::to_string(axis) + " twice");
    taken = 1;
  }
  Extents result;
  std::size_t next = 0;
  for (const char added : is_new) result.push_back(added ? 1 : of[next++]);
  return result;
}

}  // namespace

const char* list_name(const Attributes& node) { return node.node().op_type == "Reshape" ? "shape" : "axes"; }

Extents regrouped(const Attributes& node, const Extents& of, const std::optional<Extents>& list) {
  const std::string_view op = node.node().op_type;
  if (op == "Flatten") return flattened(node, of);
  if (op == "Squeeze") return squeezed(node, of, list);
  const Extents all = list.value_or(Extents{});
  return op == "Reshape" ? reshape_extents(node, of, all) : unsqueezed(node, of, all);
}

std::vector<std::size_t> permutation(const Attributes& node, std::size_t rank) {
  Extents reversed(rank);
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const Extents perm = node.integers("perm").value_or(reversed);
  if (perm.size() != rank) node.invalid("permutes " + std::to_string(perm.size()) + " axes of " + std::to_string(rank));
  std::vector<std::size_t> order;
  std::vector<char> seen(rank, 0);
  for (const std::int64_t axis : perm) {
    order.push_back(axis_of(node, axis, rank));
    if (seen[order.back()]++ != 0) node.invalid("has the axis " + std::to_string(axis) + " twice in perm");
  }
  return order;
}

std::vector<Range> NodeContext::slice_ranges(const Extents& of) const {
  const Extents starts = list("starts", 1).value_or(Extents{}), ends = list("ends", 2).value_or(Extents{});
  const std::optional<Extents> axes = list("axes", 3), steps = list("steps", 4);
  std::vector<Range> ranges;
  for (const std::int64_t extent : of) ranges.push_back({0, extent, 1});
  if (starts.size() != ends.size() || (axes && axes->size() != starts.size()) ||
      (steps && steps->size() != starts.size()) || (!axes && starts.size() > of.size()))
    invalid("has starts, ends, axes and steps of different lengths");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t at = axes ? axis_of(*this, (*axes)[i], of.size()) : i;
    const std::int64_t step = steps ? (*steps)[i] : 1, extent = of[at];
    if (step == 0) invalid("has a step of 0");
    if (extent == 0) continue;
    const auto place = [&](std::int64_t position, std::int64_t least, std::int64_t most) {
      return std::clamp(position < 0 ? position + extent : position, least, most);
    };
    const bool up = step > 0;
    const std::int64_t most = up ? extent : extent - 1, first = place(starts[i], 0, most);
    const std::int64_t last = place(ends[i], up ? 0 : -1, most);
    const std::int64_t span = up ? last - first : first - last, size = up ? step : -step;
    const std::int64_t count = span > 0 ? (span - 1) / size + 1 : 0;
    ranges[at] = {first, count, count > 1 ? step : 1};  // one element needs no step; the file's may be huge
  }
  return ranges;
}

std::vector<char> NodeContext::reduced_axes(std::size_t rank) const {
  const Extents axes = list("axes", 1).value_or(Extents{});
  std::vector<char> over(rank, axes.empty() && integer("noop_with_empty_axes", 0) == 0);
  for (const std::int64_t axis : axes) over[axis_of(*this, axis, rank)] = 1;
  return over;
}

Extents aligned(const Attributes& node, std::int64_t opset, const Extents& its, std::size_t rank) {
  if (opset >= 7 || !node.has("axis") || its.size() >= rank || element_count(its) == 1) return its;
  const std::size_t first = axis_of(node, node.integer("axis", 0), rank);
  if (first + its.size() > rank)
    node.invalid("has an operand of " + text(its) + " at axis " + std::to_string(first) + " of " +
                 std::to_string(rank));
  Extents all = its;
  all.resize(rank - first, 1);
  return all;
}

Extents broadcast(const Attributes& node, const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1, of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) node.invalid("has operands of " + text(a) + " and " + text(b));
    result[result.size() - 1 - i] = of_a == 1 ? of_b : of_a;
  }
  return result;
}

}  // namespace lamina::onnx
