// Operators that rename or regroup axes: they change the view of a value, and make no node.

#include <algorithm>
#include <map>

#include "fold_or_refuse.h"
#include "lib/onnx/fold.h"
#include "lrn.h"

namespace lamina::onnx {
namespace {

/// An attribute up to some opset, an input from then on.
std::optional<Extents> attribute_or_input(const Call& call, const char* name, std::size_t input) {
  std::optional<Extents> found = call.attributes().integers(name);
  if (!found && call.has(input)) found = call.attributes().list(call.constant(input, name));
  return found;
}

/// Makes an op of channels that a Transpose has moved: an image whose channels are groups x members in the other order.
void shuffle_channels(Call& call, Running& x) {
  const Shape s = x.value.shape();
  if (x.view.size() < 3 || x.view.size() > 4 || x.view[1].size() != 2) return;
  const OnnxFactor members = x.view[1][0], groups = x.view[1][1];
  if (members.extent * groups.extent != s.c || members.stride != s.plane() ||
      groups.stride != members.extent * s.plane()) {
    return;
  }
  Running y = x;
  y.view[1] = axis(s.c, s.plane());
  y.value = call.append(ChannelShuffle{.groups = narrow(call, groups.extent, 1, "number of groups")}, {as_image(y)},
                        call.name());
  x = std::move(y);
}

/// The extents of the input. A Pad before it becomes an op, since these extents include it.
Extents settled_extents(Call& call) {
  if (!call.pending(0).squares) call.running(0);
  return call.extents(0);
}

void result_as(Call& call, const Extents& wanted) {
  Running x = call.pending(0).squares ? call.pending(0) : call.running(0);
  const std::optional<View> view = reshaped(x.view, wanted);
  if (!view) {
    throw Refusal{"it groups axes of " + text(extents(x.view)) +
                  " that do not follow each other in memory: it would need an op that moves numbers (Reshape)"};
  }
  x.view = *view;
  if (!x.squares) shuffle_channels(call, x);
  call.result(std::move(x));
}

}  // namespace

void fold_or_refuse(Call& call) {
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    if (call.has(i) && !call.is_constant(i)) {
      throw Refusal{"it works on values of the running network: it would need an op " +
                    std::string(call.attributes().node().op_type)};
    }
  }
  call.fold();
}

void import_folded(Call& call) { fold_or_refuse(call); }

void import_if(Call& call) {
  const Constant& condition = call.constant(0, "its condition");
  if (condition.count() != 1) call.attributes().invalid("has a condition of " + text(condition.extents));
  call.inline_graph(condition.at(0) != 0 ? "then_branch" : "else_branch");
}

void import_identity(Call& call) {
  if (call.is_constant(0)) {
    fold_or_refuse(call);
  } else {
    call.result(Running(call.pending(0)));
  }
}

namespace {

/// Extents with the padding that no op has done yet.
Extents padded_extents(const Call& call) {
  Extents all = call.extents(0);
  if (!call.is_constant(0)) {
    const Running& x = call.pending(0);
    if (x.squares && x.squares->size == 0 && x.squares->before + x.squares->after > 0) {
      throw Refusal{"it asks for the extents of a padded value: it would need an op Pad"};
    }
    if (const std::optional<Padding>& padding = x.padding) {
      all[2] += padding->top + padding->bottom;
      if (all.size() > 3) all[3] += padding->left + padding->right;
    }
  }
  return all;
}

}  // namespace

void import_shape(Call& call) {
  Constant shape = shape_constant(call.attributes(), padded_extents(call));
  shape.of_extents = !call.is_constant(0);
  call.result(std::move(shape));
}

void import_size(Call& call) {
  const auto count = static_cast<double>(element_count(padded_extents(call)).value_or(0));
  const bool running = !call.is_constant(0);
  call.result(
      Constant{.type = ElementType::i64, .extents = {}, .values = {count}, .uniform = false, .of_extents = running});
}

void import_reshape(Call& call) {
  if (call.is_constant(0)) return fold_or_refuse(call);
  const Extents own = settled_extents(call);
  Extents wanted = attribute_or_input(call, "shape", 1).value_or(Extents{});
  const bool of_file = !call.has(1) || !call.constant(1, "shape").of_extents;
  if (of_file) wanted = call.with_batch(call.pending(0), wanted);
  result_as(call, reshape_extents(call.attributes(), own, wanted));
}

void import_flatten(Call& call) {
  if (call.is_constant(0)) return fold_or_refuse(call);
  result_as(call, flatten_extents(call.attributes(), settled_extents(call)));
}

void import_squeeze(Call& call) {
  if (call.is_constant(0)) return fold_or_refuse(call);
  const Extents own = settled_extents(call);
  result_as(call, squeeze_extents(call.attributes(), own, attribute_or_input(call, "axes", 1)));
}

void import_unsqueeze(Call& call) {
  if (call.is_constant(0)) return fold_or_refuse(call);
  const Extents axes = attribute_or_input(call, "axes", 1).value_or(Extents{});
  result_as(call, unsqueeze_extents(call.attributes(), settled_extents(call), axes));
}

void import_transpose(Call& call) {
  if (call.is_constant(0)) return fold_or_refuse(call);
  Running x = call.running(0);
  View view;
  for (const std::size_t axis : permutation(call.attributes(), x.view.size())) view.push_back(x.view[axis]);
  x.view = view;
  call.result(std::move(x));
}

namespace {

/// A border of cells of the image is an op at once.
void pad_by_cells(Call& call, Running x, const std::string& mode) {
  const std::map<std::string_view, PadBy> modes = {
      {"edge", PadBy::edge}, {"reflect", PadBy::reflect}, {"wrap", PadBy::wrap}};
  const auto found = modes.find(mode);
  if (found == modes.end()) call.attributes().invalid("has the mode " + mode.substr(0, 20));
  x.padding->by = found->second;
  x.padding->number = 0;
  call.importer().settle_padding(x);
  call.result(std::move(x));
}

}  // namespace

/// A Pad of rows and columns is kept beside the value, for the op that reads it.
void import_pad(Call& call) {
  const Attributes& node = call.attributes();
  if (call.is_constant(0)) throw Refusal{"it pads a constant: it would need to be folded"};
  const std::size_t rank = settled_extents(call).size();
  const std::string mode = node.text("mode", "constant");
  const Extents pads = attribute_or_input(call, "pads", 1).value_or(Extents{});
  std::vector<std::size_t> axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = i;
  if (call.has(3)) {
    axes.clear();
    for (const std::int64_t axis : node.list(call.constant(3, "its axes"))) axes.push_back(axis_of(node, axis, rank));
  }
  if (pads.size() != 2 * axes.size()) {
    node.invalid("has " + std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) + " axes");
  }
  Padding padding;
  padding.number = call.opset() < 11 ? node.number("value", 0) : 0;
  if (call.has(2)) {
    const Constant& number = call.constant(2, "its number");
    if (number.count() != 1) node.invalid("has " + text(number.extents) + " as its number");
    padding.number = number.at(0);
  }
  Extents before(rank, 0), after(rank, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    constexpr std::int64_t most = 1 << 30;
    if (pads[i] > most || pads[axes.size() + i] > most) node.invalid("has pads of " + text(pads));
    before[axes[i]] = pads[i];
    after[axes[i]] = pads[axes.size() + i];
  }
  if (mode == "constant" && padded_squares(call, before, after, padding.number)) return;
  Running x = call.running(0);
  bool any = false;
  for (std::size_t i = 0; i < rank; ++i) {
    if (before[i] == 0 && after[i] == 0) continue;
    any = true;
    if (before[i] < 0 || after[i] < 0) throw Refusal{"its pads are negative: it would need an op that cuts"};
    if (i < 2 || rank > 4) throw Refusal{"it pads other axes than rows and columns: it would need an op Pad"};
    (i == 2 ? padding.top : padding.left) = before[i];
    (i == 2 ? padding.bottom : padding.right) = after[i];
  }
  if (any) {
    padding.name = call.name();
    x.padding = padding;
    if (mode != "constant") return pad_by_cells(call, std::move(x), mode);
  }
  call.result(std::move(x));
}

}  // namespace lamina::onnx
