// Concat, Split and Slice along the channels, and Gather from a computed value.

#include "operators.h"

namespace lamina::onnx {
namespace {

/// Channels in each element of an axis that is the channels or their outer part, as the directions of an LSTM.
std::int64_t group_of(const DynamicValue& x, std::size_t along) {
  const Shape shape = x.value.shape();
  const std::int64_t whole = extent(x.view[along]), group = shape.c / whole;
  if (shape.c % whole != 0 || x.view[along] != axis(whole, group * shape.plane())) {
    throw Refusal{"axis " + std::to_string(along) + " of " + text(extents(x.view)) + " is not the channels of the " +
                      to_string(shape) + " that it is kept as: only channels are joined, split or cut",
                  true};
  }
  return group;
}

/// The view of a value whose axis `along` is the channels after their number has changed. An extent of 1 is not in it.
View along_channels(const DynamicValue& x, std::size_t along, const Shape& after) {
  const std::int64_t group = group_of(x, along);
  View view = with_channels(x.view, x.value.shape(), after, group);
  view[along] = axis(after.c / group, group * after.plane());
  return view;
}

/// A contiguous part of the axis.
DynamicValue run_of(NodeContext& context, const DynamicValue& x, std::size_t along, std::int64_t first,
                    std::int64_t count, const std::string& name) {
  const std::int64_t group = group_of(x, along);
  const Value y = context.append(Slice{.first = narrow(context, first * group, 0, "first channel"),
                                       .channels = narrow(context, count * group, 1, "number of channels")},
                                 {x.value}, name);
  return {.value = y, .view = along_channels(x, along, y.shape()), .type = x.type};
}

/// h[-1] of an LSTM of several layers: the only reader of the concatenated h of all layers takes the last one. The
/// others need not be computed. Does nothing and returns false for other nodes.
bool takes_last_layer(NodeContext& context, std::size_t along, std::size_t rank) {
  const std::optional<std::int64_t> index = context.next_index(along, rank);
  const std::size_t last = context.inputs() - 1;
  if (index != -1 && index != static_cast<std::int64_t>(last)) return false;
  for (std::size_t i = 0; i <= last; ++i) {
    const DynamicValue& h = context.pending(i);
    if (!h.lstm || h.view.size() != rank || !h.view[along].empty()) return false;
    if (i < last && !h.lstm->made.contains(Steps::all)) return false;  // no next layer reads it
  }
  DynamicValue h = context.pending(last);
  h.view.erase(h.view.begin() + static_cast<std::ptrdiff_t>(along));
  context.fuse_next();
  context.result(std::move(h));
  return true;
}

}  // namespace

void import_concat(NodeContext& context) {
  const Attributes& node = context.attributes();
  const std::size_t rank = context.viewed(0).view.size(), along = axis_of(node, node.integer("axis", 1), rank);
  if (takes_last_layer(context, along, rank)) return;
  const auto channels_along = [&](const DynamicValue& x) {
    const Shape shape = x.value.shape();
    const std::int64_t whole = extent(x.view[along]);
    return shape.c % whole == 0 && x.view[along] == axis(whole, shape.c / whole * shape.plane());
  };
  /// An operand in the usual order, if it is not joined along its channels.
  const auto operand = [&](std::size_t i) {
    const DynamicValue& x = context.dynamic(i);
    if (x.view.size() != rank || along != 1 || channels_along(x)) return x;
    return in_order(context, x, usual_labels(rank), context.name() + ".x" + std::to_string(i));
  };
  const DynamicValue first = operand(0);
  std::vector<Value> operands;
  for (std::size_t i = 0; i < context.inputs(); ++i) {
    const DynamicValue x = operand(i);
    if (x.view.size() != rank) node.invalid("joins values of different rank");
    const Shape &a = x.value.shape(), &b = first.value.shape();
    const View its = along_channels(x, along, b);
    if (a.n != b.n || a.h != b.h || a.w != b.w || its != along_channels(first, along, b)) {
      Extents others = extents(x.view), firsts = extents(first.view);
      others[along] = firsts[along] = 0;
      if (others != firsts) node.invalid("joins " + text(extents(first.view)) + " and " + text(extents(x.view)));
      refuse_order("its operands have their axes in different orders");
    }
    operands.push_back(x.value);
  }
  if (operands.size() == 1) return context.result(first);
  const Value y = context.append(Concat{}, operands, context.name());
  context.result({.value = y, .view = along_channels(first, along, y.shape()), .type = first.type});
}

void import_split(NodeContext& context) {
  const Attributes& node = context.attributes();
  const DynamicValue& x = context.dynamic(0);
  const std::size_t along = axis_of(node, node.integer("axis", 0), x.view.size());
  const std::int64_t whole = extent(x.view[along]);
  const auto outputs = static_cast<std::int64_t>(node.node().outputs.size());
  const std::optional<Extents> given = context.list("split", 1);
  Extents parts = given.value_or(Extents{});
  const std::int64_t each = (whole + outputs - 1) / outputs;
  for (std::int64_t left = given ? 0 : whole; left > 0; left -= each) parts.push_back(std::min(each, left));
  std::int64_t sum = 0;
  for (const std::int64_t part : parts) {
    if (part < 0 || part > whole) node.invalid("has a part of " + std::to_string(part));
    sum += part;
  }
  if (static_cast<std::int64_t>(parts.size()) != outputs || sum != whole) {
    node.invalid("splits " + std::to_string(whole) + " into " + text(parts));
  }
  const DynamicValue source = x;  // result() may move the value that x refers to
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (context.wanted(i)) {
      const std::string name = i == 0 ? context.name() : std::string(node.node().outputs[i]);
      context.result(run_of(context, source, along, first, parts[i], name), i);
    }
    first += parts[i];
  }
}

void import_slice(NodeContext& context) {
  const DynamicValue x = context.viewed(0);
  const Extents own = extents(x.view);
  const std::vector<Range> ranges = context.slice_ranges(own);
  std::optional<std::size_t> along;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].first == 0 && ranges[i].count == own[i] && ranges[i].step == 1) continue;
    if (along || ranges[i].step != 1) throw Refusal{"it takes other than consecutive channels: only x[:, a:b] is read"};
    if (ranges[i].count == 0) throw Refusal{"it takes nothing: leave this slice out of the model"};
    along = i;
  }
  if (!along) return context.result(x);
  const auto& [first, count, step] = ranges[*along];
  if (count == 1 && takes_step(context, *along, first, true)) return;
  context.result(run_of(context, context.dynamic(0), *along, first, count, context.name()));
}

/// A Gather from a computed value takes the only element of an axis, everything in order under other extents
/// (as_strided), the last step of an LSTM, or consecutive channels.
void import_gather_part(NodeContext& context) {
  const Attributes& node = context.attributes();
  const DynamicValue x = context.viewed(0);
  const Constant& at = context.constant(1, "its indices");
  const std::size_t along = axis_of(node, node.integer("axis", 0), x.view.size());
  const std::int64_t whole = extent(x.view[along]);
  const auto index = [&](std::int64_t i) {
    const std::int64_t its = to_integer(at.at(i));
    return its < 0 ? its + whole : its;
  };
  bool in_order = at.count() > 0;
  for (std::int64_t i = 1; in_order && i < at.count(); ++i) in_order = index(i) == index(0) + i;
  DynamicValue y = x;
  if (in_order && x.view.size() == 1 && index(0) == 0 && at.extents.size() > 0) {
    const Extents wanted = context.with_batch(x, at.extents);
    const std::optional<View> view = element_count(wanted) == whole ? reshaped(x.view, wanted) : std::nullopt;
    if (view) {
      y.view = *view;
      return context.result(std::move(y));
    }
  }
  if (!in_order || at.extents.size() > 1) {
    throw Refusal{"it takes a part of a computed value by indices that are no run of channels: use x[:, a:b]"};
  }
  if (index(0) < 0 || index(0) + at.count() > whole) node.invalid("takes indices beyond " + std::to_string(whole));
  if (at.count() == 1 && takes_step(context, along, index(0), !at.extents.empty())) return;
  if (at.count() < whole) y = run_of(context, context.dynamic(0), along, index(0), at.count(), context.name());
  if (at.extents.empty()) y.view.erase(y.view.begin() + static_cast<std::ptrdiff_t>(along));
  context.result(std::move(y));
}

Operators channel_operators() {
  return {{{"Concat"}, import_concat}, {{"Slice"}, import_slice}, {{"Split"}, import_split}};
}

}  // namespace lamina::onnx
