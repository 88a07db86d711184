// Concat, Split and Slice along the channels.

#include "fold_or_refuse.h"
#include "lib/onnx/fold.h"

namespace lamina::onnx {
namespace {

Running channels_of(Call& call, const Running& x, std::int64_t first, std::int64_t count, const std::string& name) {
  const Value y = call.append(
      Slice{.first = narrow(call, first, 0, "first channel"), .channels = narrow(call, count, 1, "number of channels")},
      {x.value}, name);
  return {.value = y, .view = with_channels(x.view, x.value.shape(), y.shape()), .type = x.type};
}

/// The view of a value whose axis `along` is the channels, with other channels: a view does not show one channel.
View along_channels(const Running& x, std::size_t along, const Shape& after) {
  View view = with_channels(x.view, x.value.shape(), after);
  view[along] = axis(after.c, after.plane());
  return view;
}

void demand_channels(const Running& x, std::size_t along) {
  if (x.view[along] != axis(x.value.shape().c, x.value.shape().plane())) {
    throw Refusal{"axis " + std::to_string(along) + " of " + text(extents(x.view)) + " is not the channel axis of " +
                  to_string(x.value.shape()) + ": it would need an op along other axes"};
  }
}

}  // namespace

void import_concat(Call& call) {
  const Attributes& node = call.attributes();
  bool constants = true;
  for (std::size_t i = 0; i < call.inputs(); ++i) constants = constants && call.is_constant(i);
  if (constants) return fold_or_refuse(call);
  const Running& first = call.running(0);
  const std::size_t along = axis_of(node, node.integer("axis", 1), first.view.size());
  std::vector<Value> operands;
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    const Running& x = call.running(i);
    if (x.view.size() != first.view.size()) node.invalid("joins values of different rank");
    demand_channels(x, along);
    const Shape &a = x.value.shape(), &b = first.value.shape();
    if (a.n != b.n || a.h != b.h || a.w != b.w || along_channels(x, along, b) != first.view) {
      Extents others = extents(x.view), firsts = extents(first.view);
      others[along] = firsts[along] = 0;
      if (others != firsts) node.invalid("joins " + text(extents(first.view)) + " and " + text(extents(x.view)));
      throw Refusal{"its operands are kept in different orders: it would need an op that moves numbers"};
    }
    operands.push_back(x.value);
  }
  if (operands.size() == 1) return call.result(first);
  const Value y = call.append(Concat{}, operands, call.name());
  call.result({.value = y, .view = along_channels(first, along, y.shape()), .type = first.type});
}

void import_split(Call& call) {
  const Attributes& node = call.attributes();
  const Running& x = call.running(0);
  const std::size_t along = axis_of(node, node.integer("axis", 0), x.view.size());
  const std::int64_t whole = extent(x.view[along]);
  const auto outputs = static_cast<std::int64_t>(node.node().outputs.size());
  Extents parts;
  if (const std::optional<Extents> split = node.integers("split")) {
    parts = *split;
  } else if (call.has(1)) {
    parts = node.list(call.constant(1, "its parts"));
  } else {
    const std::int64_t each = (whole + outputs - 1) / outputs;
    for (std::int64_t left = whole; left > 0; left -= each) parts.push_back(std::min(each, left));
  }
  std::int64_t sum = 0;
  for (const std::int64_t part : parts) {
    if (part < 0 || part > whole) node.invalid("has a part of " + std::to_string(part));
    sum += part;
  }
  if (static_cast<std::int64_t>(parts.size()) != outputs || sum != whole) {
    node.invalid("splits " + std::to_string(whole) + " into " + text(parts));
  }
  demand_channels(x, along);
  const Running source = x;  // results may move what `x` refers to
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (call.wanted(i)) {
      const std::string name = i == 0 ? call.name() : std::string(node.node().outputs[i]);
      call.result(channels_of(call, source, first, parts[i], name), i);
    }
    first += parts[i];
  }
}

void import_slice(Call& call) {
  if (call.is_constant(0)) return fold_or_refuse(call);
  const Attributes& node = call.attributes();
  const Running x = call.running(0);
  const auto list = [&](const char* name, std::size_t input) {
    std::optional<Extents> found = node.integers(name);
    if (!found && call.has(input)) found = node.list(call.constant(input, std::string("its ") + name));
    return found;
  };
  const Extents own = extents(x.view);
  const std::vector<Range> ranges =
      slice_ranges(node, own, list("starts", 1).value_or(Extents{}), list("ends", 2).value_or(Extents{}),
                   list("axes", 3), list("steps", 4));
  std::optional<std::size_t> along;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].first == 0 && ranges[i].count == own[i] && ranges[i].step == 1) continue;
    if (along || ranges[i].step != 1)
      throw Refusal{"it takes more than a run of channels: it would need an op that does"};
    if (ranges[i].count == 0) throw Refusal{"it takes nothing"};
    along = i;
  }
  if (!along) return call.result(x);
  demand_channels(x, *along);
  call.result(channels_of(call, x, ranges[*along].first, ranges[*along].count, call.name()));
}

}  // namespace lamina::onnx
