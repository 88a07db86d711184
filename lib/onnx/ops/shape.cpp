// Operators that rename or regroup axes: they change the view of a value, and make no node.

#include <algorithm>
#include <map>

#include "lib/onnx/extents.h"
#include "operators.h"

namespace lamina::onnx {
namespace {

/// Appends a ChannelShuffle if a Transpose has swapped the groups and the members of the channels.
void shuffle_channels(NodeContext& context, DynamicValue& x) {
  const Shape s = x.value.shape();
  if (x.view.size() < 3 || x.view.size() > 4 || x.view[1].size() != 2) return;
  const OnnxFactor members = x.view[1][0], groups = x.view[1][1];
  if (members.extent * groups.extent != s.c || members.stride != s.plane() ||
      groups.stride != members.extent * s.plane()) {
    return;
  }
  DynamicValue y = x;
  y.view[1] = axis(s.c, s.plane());
  y.value = context.append(ChannelShuffle{.groups = narrow(context, groups.extent, 1, "number of groups")},
                           {as_image(y)}, context.name());
  x = std::move(y);
}

/// The extents of the input, for a Shape. Pending squares stay pending: exporters ask for extents inside an LRN.
Extents extents_of_value(NodeContext& context) {
  const DynamicValue& x = context.viewed(0);
  if (x.squares && x.squares->size == 0 && x.squares->before + x.squares->after > 0)
    throw Refusal{"it asks for the extents of padded squares: write them as numbers"};
  return extents(x.view);
}

void import_if(NodeContext& context) {
  context.inline_graph(context.number(0, "its condition") != 0 ? "then_branch" : "else_branch");
}

void import_identity(NodeContext& context) { context.result(DynamicValue(context.pending(0))); }

void import_shape(NodeContext& context) {
  Constant shape = shape_constant(context.attributes(), extents_of_value(context));
  shape.of_extents = true;
  context.result(std::move(shape));
}

void import_size(NodeContext& context) {
  const auto count = static_cast<double>(element_count(extents_of_value(context)).value_or(0));
  context.result(Constant{.type = ElementType::i64, .extents = {}, .values = {count}, .of_extents = true});
}

void import_regroup(NodeContext& context) {
  const Attributes& node = context.attributes();
  const bool reshapes = node.node().op_type == "Reshape";
  std::optional<Extents> list = context.list(list_name(node), 1);
  DynamicValue x = context.viewed(0);
  const Extents own = extents(x.view);
  if (reshapes && list && (!context.has(1) || !context.constant(1, "its shape").of_extents))
    list = context.with_batch(x, *list);
  const std::optional<View> view = reshaped(x.view, regrouped(node, own, list));
  if (!view) refuse_order("it groups axes of " + text(own) + " that do not follow each other in memory");
  x.view = *view;
  if (!x.is_pending()) shuffle_channels(context, x);
  context.result(std::move(x));
}

void import_transpose(NodeContext& context) {
  DynamicValue x = context.viewed(0);
  View view;
  for (const std::size_t axis : permutation(context.attributes(), x.view.size())) view.push_back(x.view[axis]);
  x.view = view;
  context.result(std::move(x));
}

/// A padding with cells of the image becomes an op at once.
void pad_by_cells(NodeContext& context, DynamicValue x, const std::string& mode) {
  const std::map<std::string_view, PadBy> modes = {
      {"edge", PadBy::edge}, {"reflect", PadBy::reflect}, {"wrap", PadBy::wrap}};
  const auto found = modes.find(mode);
  if (found == modes.end()) context.attributes().invalid("has the mode " + mode.substr(0, 20));
  x.padding->by = found->second;
  x.padding->number = 0;
  context.append_padding(x);
  context.result(std::move(x));
}

/// A Pad of rows and columns stays pending, for the op that reads the value.
void import_pad(NodeContext& context) {
  const Attributes& node = context.attributes();
  const std::size_t rank = context.viewed(0).view.size();
  const std::string mode = node.text("mode", "constant");
  const Extents pads = context.list("pads", 1).value_or(Extents{});
  std::vector<std::size_t> axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = i;
  if (context.has(3)) {
    axes.clear();
    for (const std::int64_t axis : node.list(context.constant(3, "its axes")))
      axes.push_back(axis_of(node, axis, rank));
  }
  if (pads.size() != 2 * axes.size()) {
    node.invalid("has " + std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) + " axes");
  }
  Padding padding;
  padding.number = context.opset() < 11 ? node.number("value", 0) : 0;
  if (context.has(2)) padding.number = context.number(2, "its number");
  Extents before(rank, 0), after(rank, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    constexpr std::int64_t most = 1 << 30;
    if (pads[i] > most || pads[axes.size() + i] > most) node.invalid("has pads of " + text(pads));
    before[axes[i]] = pads[i];
    after[axes[i]] = pads[axes.size() + i];
  }
  if (mode == "constant" && padded_squares(context, before, after, padding.number)) return;
  DynamicValue x = context.dynamic(0);
  bool any = false;
  for (std::size_t i = 0; i < rank; ++i) {
    if (before[i] == 0 && after[i] == 0) continue;
    any = true;
    if (before[i] < 0 || after[i] < 0) throw Refusal{"its pads are negative: it cuts"};
    if (i < 2 || rank > 4) throw Refusal{"it pads other axes than rows and columns"};
    (i == 2 ? padding.top : padding.left) = before[i];
    (i == 2 ? padding.bottom : padding.right) = after[i];
  }
  if (any) {
    padding.name = context.name();
    x.padding = padding;
    if (mode != "constant") return pad_by_cells(context, std::move(x), mode);
  }
  context.result(std::move(x));
}

}  // namespace
Operators shape_operators() {
  return {{{"Flatten", "Reshape", "Squeeze", "Unsqueeze"}, import_regroup},
          {{"Identity"}, import_identity},
          {{"If"}, import_if, false},
          {{"Pad"}, import_pad},
          {{"Shape"}, import_shape},
          {{"Size"}, import_size},
          {{"Transpose"}, import_transpose}};
}

}  // namespace lamina::onnx
