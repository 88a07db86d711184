// Concat, Split and Slice, and Gather from a computed value.

#include <algorithm>
#include <array>

#include "lib/core/units/box.h"
#include "lib/onnx/operators.h"

namespace lamina::onnx {
namespace {

/// Steps along an axis of the graph, in elements of the value: to the axis's next element, and to the next image,
/// channel or row.
struct Strides {
  std::int64_t inner, outer;
};
Strides strides_of(const Shape& x, lamina::Axis axis) {
  if (axis == lamina::Axis::channel) return {x.plane(), x.image()};
  return axis == lamina::Axis::row ? Strides{x.w, x.plane()} : Strides{1, x.w};
}

/// Whether `extent` parts, `stride` elements apart, are an axis of the graph: its elements, or groups of them.
bool are_axis(const Shape& x, std::int64_t extent, std::int64_t stride, lamina::Axis axis) {
  const auto [inner, outer] = strides_of(x, axis);
  return extent * stride == outer && stride % inner == 0;
}

constexpr std::array all_axes = {lamina::Axis::channel, lamina::Axis::row, lamina::Axis::column};

/// The value with these parts as rows.
Value as_rows(NodeContext& context, Value x, std::int64_t extent, std::int64_t stride, const std::string& name) {
  const std::int64_t image = x.shape().image();
  const Reorder op{{static_cast<int>(image)},
                   {0},
                   static_cast<int>(image / (extent * stride)),
                   {static_cast<int>(extent), static_cast<int>(stride)}};
  return context.append_once(op, x, name);
}

/// h[-1] of an LSTM or GRU of several layers: the only reader of the concatenated h of all layers takes the last
/// layer's. Other layers' h need not be computed. Does nothing and returns false for other nodes.
bool takes_last_layer(NodeContext& context, std::size_t along, std::size_t rank) {
  const std::optional<std::int64_t> index = context.next_index(along, rank);
  const std::size_t last = context.inputs() - 1;
  if (index != -1 && index != static_cast<std::int64_t>(last)) return false;
  for (std::size_t i = 0; i <= last; ++i) {
    const DynamicValue& h = context.pending(i);
    if (!h.recurrent || h.view.size() != rank || !h.view[along].empty()) return false;
    if (i < last && !h.recurrent->made.contains(Steps::all)) return false;  // no next layer reads it
  }
  DynamicValue h = context.pending(last);
  h.view.erase(h.view.begin() + static_cast<std::ptrdiff_t>(along));
  context.fuse_next();
  context.result(std::move(h));
  return true;
}

/// How values are joined along an axis: the stride of the axis in each value, and the view of the result.
struct Joint {
  std::int64_t stride;
  View view;
};
std::optional<Joint> joint_of(const std::vector<DynamicValue>& all, std::size_t along) {
  std::int64_t whole = 0;
  const Axis* several = nullptr;
  for (const DynamicValue& x : all) {
    if (x.view[along].size() > 1 || x.value.shape().n != all[0].value.shape().n) return std::nullopt;
    whole += extent(x.view[along]);
    if (!x.view[along].empty()) several = &x.view[along];
  }
  const std::int64_t image = all[0].value.shape().image();
  Extents strides = {1, image};  // for an axis of one element: as in the file, or outermost
  for (std::size_t i = along + 1; i < all[0].view.size(); ++i) strides[0] *= extent(all[0].view[i]);
  if (several != nullptr) strides = {several->front().stride};
  for (const std::int64_t stride : strides) {
    std::optional<View> view = with_extent(all[0].view, along, stride, whole);
    for (const DynamicValue& x : all)
      if (x.value.shape().image() % (extent(x.view[along]) * stride) != 0 ||
          (!x.view[along].empty() && x.view[along].front().stride != stride) ||
          with_extent(x.view, along, stride, whole) != view)
        view.reset();
    if (view) return Joint{stride, *view};
  }
  return std::nullopt;
}

/// A constant as a value with the images of another one: 0 times part of each image, plus the constant. The result is
/// NaN where the part is not finite.
DynamicValue as_value(NodeContext& context, std::size_t input, const DynamicValue& like, const std::string& name) {
  const Constant& given = context.constant(input);
  const Constant all = context.one_image(given, extents(like.view));
  const Shape shape = like.value.shape();
  const bool is_one = all.extents != given.extents;
  if (all.count() < 1 || all.extents.empty() || like.view[0] != axis(shape.n, shape.image()) ||
      (!is_one && all.extents[0] != shape.n))
    throw Refusal{"its constant of " + text(given.extents) + " has another number of images than " +
                  text(extents(like.view))};
  const std::int64_t image = all.count() / all.extents[0];
  context.consume_budget(2 * image);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < image; ++i) numbers.push_back(all.at(i));
  bool alike = image <= shape.image();
  for (std::int64_t i = 0; alike && i < all.count(); ++i)
    alike = all.at(i) == numbers[static_cast<std::size_t>(i % image)];
  if (!alike)
    throw Refusal{"its constant of " + text(given.extents) +
                  " differs between images, or is larger than those that are computed: give it as an input"};
  if (given.origin == Origin::parameter) context.note(context.input_name(input), false);
  Value y = as_channels(context, like, name + ".flat").value;
  if (image < shape.image())
    y = context.append(Slice{.first = 0, .count = static_cast<int>(image)}, {y}, name + ".part");
  y = context.append(ScaleShift{.by_channel = image > 1}, {y}, name);
  context.weights(y, "scale", {image}, std::vector<double>(numbers.size(), 0), like.type, {});
  context.weights(y, "shift", {image}, std::move(numbers), like.type, {});
  View view = {axis(shape.n, image)};
  std::int64_t stride = image;
  for (std::size_t i = 1; i < all.extents.size(); ++i) view.push_back(axis(all.extents[i], stride /= all.extents[i]));
  const DynamicValue value{.value = y, .view = std::move(view), .type = like.type};
  return in_order(context, value, usual_labels(value.view.size()), name + ".image");
}

}  // namespace

void import_concat(NodeContext& context) {
  std::size_t computed = 0, constants = 0;  // index of the first computed input, number of constants
  for (std::size_t i = context.inputs(); i-- > 0;) context.is_constant(i) ? ++constants : computed = i;
  const std::size_t rank = context.viewed(computed).view.size(),
                    along = axis_of(context, context.integer("axis", 1), rank);
  if (constants == 0 && takes_last_layer(context, along, rank)) return;
  std::vector<DynamicValue> x;
  for (std::size_t i = 0; i < context.inputs(); ++i) {
    const std::string name = context.name() + ".constant" + std::to_string(i);
    x.push_back(context.is_constant(i) ? as_value(context, i, context.dynamic(computed), name) : context.dynamic(i));
    Extents others = extents(x[i].view), firsts = extents(x[0].view);
    if (others.size() != rank) context.invalid("joins values of different rank");
    others[along] = firsts[along];
    if (others != firsts) context.invalid("joins " + text(extents(x[0].view)) + " and " + text(extents(x[i].view)));
  }
  if (x.size() == 1) return context.result(x[0]);
  const auto operand = [&](std::size_t i) { return context.name() + ".x" + std::to_string(i); };
  std::optional<Joint> joint = joint_of(x, along);
  for (std::size_t i = 0; !joint && i < x.size(); ++i) x[i] = in_order(context, x[i], usual_labels(rank), operand(i));
  if (!joint) joint = joint_of(x, along);
  if (!joint) throw Refusal{"it joins images: only parts of each image are joined", true};
  std::vector<Value> operands;
  for (const DynamicValue& each : x) operands.push_back(each.value);
  const auto fits = [&](lamina::Axis axis) {
    return std::ranges::all_of(x, [&](const DynamicValue& each) {
      Shape its = each.value.shape(), first = x[0].value.shape();
      const bool is_axis = are_axis(its, extent(each.view[along]), joint->stride, axis);
      extent_of(its, axis) = extent_of(first, axis);
      return is_axis && its == first;
    });
  };
  const auto found = std::ranges::find_if(all_axes, fits);
  for (std::size_t i = 0; found == all_axes.end() && i < x.size(); ++i)
    operands[i] = as_rows(context, operands[i], extent(x[i].view[along]), joint->stride, operand(i));
  const Concat op{found == all_axes.end() ? lamina::Axis::row : *found};
  const Value y = context.append(op, operands, context.name());
  context.result({.value = y, .view = joint->view, .type = x[0].type});
}

DynamicValue part_of(NodeContext& context, const DynamicValue& whole, std::size_t along, const Range& range,
                     const std::string& name) {
  DynamicValue x = whole;
  const std::int64_t extent = onnx::extent(x.view[along]);
  if (range.first == 0 && range.count == extent && range.step == 1) return x;
  const auto after = [&]() -> std::optional<View> {
    if (x.view[along].size() != 1 || x.value.shape().image() % (extent * x.view[along][0].stride) != 0)
      return std::nullopt;
    return with_extent(x.view, along, x.view[along][0].stride, range.count);
  };
  if (!after()) x = in_order(context, x, usual_labels(x.view.size()), name + ".x");
  const std::optional<View> view = after();
  if (!view) throw Refusal{"it takes a part of the images: only parts of each image are taken", true};
  const std::int64_t stride = x.view[along][0].stride;
  const auto is_its = [&](lamina::Axis axis) { return are_axis(x.value.shape(), extent, stride, axis); };
  const auto found = std::ranges::find_if(all_axes, is_its);
  std::int64_t group = found == all_axes.end() ? 0 : stride / strides_of(x.value.shape(), *found).inner;
  Slice op{.axis = lamina::Axis::row, .first = 0, .count = 0, .step = narrow(context, range.step, 1, "step")};
  if (group == 1 || (group > 1 && range.step == 1)) {
    op.axis = *found;
  } else {
    x.value = as_rows(context, x.value, extent, stride, name + ".rows");
    group = 1;
  }
  op.first = narrow(context, range.first * group, 0, "first element");
  op.count = narrow(context, range.count * group, 1, "number of elements");
  return {.value = context.append_once(op, x.value, name), .view = *view, .type = x.type};
}

void import_split(NodeContext& context) {
  const DynamicValue& x = context.dynamic(0);
  const std::size_t along = axis_of(context, context.integer("axis", 0), x.view.size());
  const std::int64_t whole = extent(x.view[along]);
  const auto outputs = static_cast<std::int64_t>(context.node().outputs.size());
  const std::optional<Extents> given = context.list("split", 1);
  Extents parts = given.value_or(Extents{});
  const std::int64_t each = (whole + outputs - 1) / outputs;
  for (std::int64_t left = given ? 0 : whole; left > 0; left -= each) parts.push_back(std::min(each, left));
  std::int64_t sum = 0;
  for (const std::int64_t part : parts) {
    if (part < 0 || part > whole) context.invalid("has a part of " + std::to_string(part));
    sum += part;
  }
  if (static_cast<std::int64_t>(parts.size()) != outputs || sum != whole)
    context.invalid("splits " + std::to_string(whole) + " into " + text(parts));
  const DynamicValue source = x;  // result() may move the value that x refers to
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (context.wanted(i)) {
      const std::string name = i == 0 ? context.name() : std::string(context.node().outputs[i]);
      context.result(part_of(context, source, along, {first, parts[i], 1}, name), i);
    }
    first += parts[i];
  }
}

void import_slice(NodeContext& context) {
  const DynamicValue& whole = context.viewed(0);
  const Extents own = extents(whole.view);
  const std::vector<Range> ranges = context.slice_ranges(own);
  std::vector<std::size_t> cut;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].first == 0 && ranges[i].count == own[i] && ranges[i].step == 1) continue;
    if (ranges[i].step < 1) throw Refusal{"its step is negative: flip the numbers before they go into the network"};
    if (ranges[i].count == 0) throw Refusal{"it takes nothing: leave this slice out of the model"};
    cut.push_back(i);
  }
  if (cut.empty()) return context.result(DynamicValue(whole));
  if (cut.size() == 1 && ranges[cut[0]].count == 1 && takes_step(context, cut[0], ranges[cut[0]].first, true)) return;
  DynamicValue y = context.dynamic(0);
  for (const std::size_t i : cut) {
    const std::string name = i == cut.back() ? context.name() : context.name() + ".axis" + std::to_string(i);
    y = part_of(context, y, i, ranges[i], name);
  }
  context.result(std::move(y));
}

/// A Gather from a computed value takes one element of an axis, elements at equal steps, or everything in order under
/// other extents (as_strided).
void import_gather_part(NodeContext& context) {
  const DynamicValue x = context.viewed(0);
  const Constant& at = context.constant(1, "its indices");
  const std::size_t along = axis_of(context, context.integer("axis", 0), x.view.size());
  const std::int64_t whole = extent(x.view[along]);
  const auto index = [&](std::int64_t i) {
    const std::int64_t its = to_integer(at.at(i));
    return its < 0 ? its + whole : its;
  };
  const std::int64_t step = at.count() > 1 ? index(1) - index(0) : 1;
  bool is_run = at.count() > 0 && step > 0;
  for (std::int64_t i = 1; is_run && i < at.count(); ++i) is_run = index(i) - index(i - 1) == step;
  DynamicValue y = x;
  if (is_run && step == 1 && x.view.size() == 1 && index(0) == 0 && at.extents.size() > 0) {
    const Extents wanted = context.with_batch(x, at.extents);
    const std::optional<View> view = element_count(wanted) == whole ? reshaped(x.view, wanted) : std::nullopt;
    if (view) {
      y.view = *view;
      return context.result(std::move(y));
    }
  }
  if (!is_run || at.extents.size() > 1)
    throw Refusal{"it takes a part of a computed value by indices that do not ascend in equal steps: use x[:, a:b]"};
  if (index(0) < 0 || index(at.count() - 1) >= whole) context.invalid("takes indices beyond " + std::to_string(whole));
  if (at.count() == 1 && takes_step(context, along, index(0), !at.extents.empty())) return;
  if (at.count() < whole) y = part_of(context, context.dynamic(0), along, {index(0), at.count(), step}, context.name());
  if (at.extents.empty()) y.view.erase(y.view.begin() + static_cast<std::ptrdiff_t>(along));
  context.result(std::move(y));
}

Operators channel_operators() {
  return {{{"Concat"}, import_concat}, {{"Slice"}, import_slice}, {{"Split"}, import_split}};
}

}  // namespace lamina::onnx
