// Operators that rename or regroup axes: they change the view of a value, and make no node.

#include <algorithm>

#include "lib/onnx/operators.h"

namespace lamina::onnx {
namespace {

/// Appends a Reorder to a value of three or four axes if a Reshape has joined parts of axes that do not follow each
/// other in memory, as in a channel shuffle.
void reorder_joined(NodeContext& context, DynamicValue& x) {
  const auto is_joined = [](const Axis& axis) { return axis.size() > 1; };
  if (x.view.size() < 3 || x.view.size() > 4 || x.view[0] != axis(x.value.shape().n, x.value.shape().image()) ||
      std::none_of(x.view.begin() + 1, x.view.end(), is_joined))
    return;
  x = in_order(context, x, usual_labels(x.view.size()), context.name());
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
  Constant shape = shape_constant(context, extents_of_value(context));
  shape.of_extents = true;
  context.result(std::move(shape));
}

void import_size(NodeContext& context) {
  const auto count = static_cast<double>(element_count(extents_of_value(context)).value_or(0));
  context.result(Constant{.type = ElementType::i64, .extents = {}, .values = {count}, .of_extents = true});
}

void import_regroup(NodeContext& context) {
  const bool reshapes = context.node().op_type == "Reshape";
  std::optional<Extents> list = context.list(list_name(context), 1);
  DynamicValue x = context.viewed(0);
  const Extents own = extents(x.view);
  if (reshapes && list && (!context.has(1) || !context.constant(1, "its shape").of_extents))
    list = context.with_batch(x, *list);
  const Extents wanted = regrouped(context, own, list);
  std::optional<View> view = reshaped(x.view, wanted);
  if (!view && !x.is_pending()) {
    x = in_order(context, x, usual_labels(own.size()), context.name());
    view = reshaped(x.view, wanted);
  }
  if (!view) refuse_order("it groups axes of " + text(own) + " that do not follow each other in memory");
  x.view = *view;
  if (!x.is_pending()) reorder_joined(context, x);
  context.result(std::move(x));
}

/// Expand makes no node: an axis that it repeats has the stride 0.
void import_expand(NodeContext& context) {
  DynamicValue x = context.dynamic(0);
  const Extents wanted = context.list(context.constant(1, "its shape"));
  if (wanted.size() > x.view.size()) x.view.insert(x.view.begin(), wanted.size() - x.view.size(), Axis{});
  const Shape shape = x.value.shape();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Axis& its = x.view[x.view.size() - wanted.size() + i];
    const std::int64_t own = extent(its);
    const bool is_batch = its == axis(shape.n, shape.image());  // the file's batch may differ
    if (wanted[i] < 1 || (own != 1 && wanted[i] != 1 && wanted[i] != own && !is_batch))
      context.invalid("expands " + text(context.extents(0)) + " to " + text(wanted));
    if (own == 1 && wanted[i] != 1) its = {{wanted[i], 0}};
  }
  context.result(std::move(x));
}

void import_transpose(NodeContext& context) {
  DynamicValue x = context.viewed(0);
  View view;
  for (const std::size_t axis : permutation(context, x.view.size())) view.push_back(x.view[axis]);
  x.view = view;
  context.result(std::move(x));
}

/// DepthToSpace and SpaceToDepth: a Reshape, a Transpose and a Reshape.
void import_blocks(NodeContext& context) {
  if (context.dynamic(0).view.size() != 4) context.invalid("has an input of " + text(context.extents(0)));
  const DynamicValue x = in_order(context, context.dynamic(0), "nchw", context.name() + ".x");
  const Shape s = x.value.shape();
  const std::int64_t b = narrow(context, context.integer("blocksize", 0), 1, "block size");
  const bool to_space = context.node().op_type == "DepthToSpace";
  if (to_space ? s.c % (b * b) != 0 : s.h % b != 0 || s.w % b != 0)
    context.invalid("has blocks of " + std::to_string(b) + " for " + to_string(s));
  const bool by_column = context.text("mode", "DCR") == "CRD";
  const Extents split = !to_space   ? Extents{s.n, s.c, s.h / b, b, s.w / b, b}
                        : by_column ? Extents{s.n, s.c / b / b, b, b, s.h, s.w}
                                    : Extents{s.n, b, b, s.c / b / b, s.h, s.w};
  const std::vector<std::size_t> order = !to_space   ? std::vector<std::size_t>{0, 3, 5, 1, 2, 4}
                                         : by_column ? std::vector<std::size_t>{0, 1, 4, 2, 5, 3}
                                                     : std::vector<std::size_t>{0, 3, 4, 1, 5, 2};
  const View parts = reshaped(x.view, split).value();
  View moved;
  for (const std::size_t i : order) moved.push_back(parts[i]);
  const Extents result =
      to_space ? Extents{s.n, s.c / b / b, s.h * b, s.w * b} : Extents{s.n, s.c * b * b, s.h / b, s.w / b};
  const DynamicValue y = {.value = x.value, .view = reshaped(moved, result).value(), .type = x.type};
  context.result(in_order(context, y, "nchw", context.name()));
}

/// A Pad of rows and columns stays pending, for the op that reads the value. Negative pads cut.
void import_pad(NodeContext& context) {
  const std::size_t rank = context.viewed(0).view.size();
  const std::string mode = context.text("mode", "constant");
  const Extents pads = context.list("pads", 1).value_or(Extents{});
  const std::optional<Extents> given =
      context.has(3) ? std::optional(context.list(context.constant(3, "its axes"))) : std::nullopt;
  std::vector<std::size_t> axes;
  for (const std::int64_t axis : given.value_or(Extents{})) axes.push_back(axis_of(context, axis, rank));
  for (std::size_t i = 0; !given && i < rank; ++i) axes.push_back(i);
  if (pads.size() != 2 * axes.size())
    context.invalid("has " + std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) + " axes");
  constexpr std::int64_t most = 1 << 30;
  if (std::ranges::any_of(pads, [](std::int64_t its) { return its > most || its < -most; }))
    context.invalid("has pads of " + text(pads));
  double number = context.opset() < 11 ? context.number("value", 0) : 0;
  if (context.has(2)) number = context.number(2, "its number");
  Extents before(rank, 0), after(rank, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    before[axes[i]] = pads[i];
    after[axes[i]] = pads[axes.size() + i];
  }
  if (mode == "constant" && padded_squares(context, before, after, number)) return;
  DynamicValue x = context.dynamic(0);
  Pad op;
  int* const begins[] = {&op.channels_before, &op.before.h, &op.before.w};
  int* const ends[] = {&op.channels_after, &op.after.h, &op.after.w};
  bool any = false;
  for (std::size_t i = 0; i < rank; ++i) {
    if (before[i] < 0 || after[i] < 0) {
      const std::int64_t first = std::max<std::int64_t>(-before[i], 0), last = std::max<std::int64_t>(-after[i], 0);
      if (mode != "constant") throw Refusal{"its pads are negative: cut with a slice"};
      const Range rest{first, extent(x.view[i]) - first - last, 1};
      if (rest.count < 1) throw Refusal{"its negative pads leave nothing: leave this pad out of the model"};
      x = part_of(context, x, i, rest, context.name() + ".cut" + std::to_string(i));
    }
    if (before[i] <= 0 && after[i] <= 0) continue;
    any = true;
    if (i < 1 || rank > 4) throw Refusal{"it pads other axes than channels, rows and columns: only these are padded"};
    *begins[i - 1] = static_cast<int>(std::max<std::int64_t>(before[i], 0));
    *ends[i - 1] = static_cast<int>(std::max<std::int64_t>(after[i], 0));
  }
  if (any) {
    x = in_order(context, x, usual_labels(rank), context.name() + ".x");
    const std::optional<PadBy> by = enumerator_of<PadBy>(mode, pad_modes);
    if (!by) context.invalid("has the mode " + mode.substr(0, 20));
    op.by = *by;
    op.value = op.by == PadBy::value ? number : 0;
    x.padding = {context.name(), op};
    if (op.by != PadBy::value || op.channels_before + op.channels_after > 0) context.append_padding(x);
  }
  context.result(std::move(x));
}

}  // namespace

Operators shape_operators() {
  return {{{"DepthToSpace", "SpaceToDepth"}, import_blocks},
          {{"Expand"}, import_expand},
          {{"Flatten", "Reshape", "Squeeze", "Unsqueeze"}, import_regroup},
          {{"Identity"}, import_identity},
          {{"If"}, import_if, false},
          {{"Pad"}, import_pad},
          {{"Shape"}, import_shape},
          {{"Size"}, import_size},
          {{"Transpose"}, import_transpose}};
}

}  // namespace lamina::onnx
