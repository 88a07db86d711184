// Conv and ConvTranspose. If pads of a Conv differ at the two ends, an op Pad comes before it. If pads of a
// ConvTranspose differ, the op has the front pad at both ends, and an output_pad.

#include "windows.h"

namespace lamina::onnx {
namespace {

/// Whether a filter looks like a buffer in a file that does not state its parameters: it is depthwise, equal for every
/// channel, and not named as a module's weight.
bool is_blur(const NodeContext& context, const Constant& w, int groups) {
  if (context.origins_are_stated() || groups < 2 || w.extents[0] != groups || w.extents[1] != 1) return false;
  const std::string_view name = context.input_name(1);
  const std::int64_t cells = w.count() / groups;
  if (name == "weight" || name.ends_with(".weight")) return false;
  for (std::int64_t i = cells; i < w.count() && !w.uniform; ++i)
    if (w.at(i) != w.at(i % cells)) return false;
  return true;
}

void demand_extents(const NodeContext& context, const Constant& w) {
  const Extents x = context.extents(0);
  if (x.size() < 3 || x.size() != w.extents.size())
    context.invalid("has an input of " + text(x) + " and weights of " + text(w.extents));
  demand_planes(x.size());
}

/// The bias of the node, unless it is 0 and does not train; else the bias of an Add after the node.
Bias bias_of(NodeContext& context, const Extents& result) {
  Bias bias;
  if (context.has(2)) {
    bias = {numbers_of(context, 2, "its bias", result[1]), {context.input_name(2)}};
    drop_zeros(context, bias.values, 2);
  }
  return bias.values.empty() ? context.fuse_bias(result, 1) : bias;
}

/// Appends an op of these windows with its parameters, and gives the node its result.
template <class Convolution>
void append_convolution(NodeContext& context, const DynamicValue& x, Value image, Convolution op,
                        const Windows& windows, const WeightSource& source) {
  const Constant& w = context.constant(1);
  Extents result = extents(x.view);
  result[1] = op.channels;
  for (std::size_t i = 2; i < result.size(); ++i) result[i] = windows[i - 2].count;
  Bias bias = bias_of(context, result);
  op.kernel = windows.kernel();
  op.stride = windows.stride();
  op.pad = windows.begin();
  op.dilation = windows.dilation();
  op.bias = !bias.values.empty();
  const Value y = context.append(op, {image}, context.name());
  context.weights(y, "weight", {w.extents[0], w.extents[1], op.kernel.h, op.kernel.w}, context.numbers(w), w.type,
                  source);
  if (op.bias) context.weights(y, "bias", {result[1]}, std::move(bias.values), w.type, bias.source);
  context.result({.value = y, .view = layout_of(result, usual_labels(result.size())).view, .type = x.type});
}

void import_conv(NodeContext& context) {
  const bool own =
      context.padded(0).padding && context.padded(0).padding->op.value == 0 && auto_pad_of(context).empty();
  const Constant& w = context.constant(1, "its weights");
  demand_extents(context, w);
  const Extents kernel(w.extents.begin() + 2, w.extents.end());
  const bool fuses = own && have_equal_pads(windows_of(context, context.padded(0), kernel));
  const DynamicValue& x = fuses ? context.padded(0) : context.dynamic(0);
  Value image = as_image(context, x);
  const int channels = narrow(context, w.extents[0], 1, "number of channels");
  const int groups = narrow(context, context.integer("group", 1), 1, "group");
  if (element_count({w.extents[1], groups}) != image.shape().c || channels % groups != 0 || w.count() == 0)
    context.invalid("has weights of " + text(w.extents) + ", " + std::to_string(groups) + " groups, and an input of " +
                    text(extents(x.view)));
  Windows windows = windows_of(context, x, kernel);
  if (!have_equal_pads(windows)) image = with_equal_pads(context, image, windows);
  for (const Windows::Along& a : windows.along) narrow(context, a.begin, 0, "pad");
  const bool blurs = is_blur(context, w, groups);
  if (blurs) context.note(context.input_name(1), false);
  append_convolution(context, x, image, Conv{.channels = channels, .kernel = 1, .groups = groups}, windows,
                     blurs ? WeightSource{} : WeightSource{context.input_name(1)});
}

/// The windows that spread the elements of x (their `count` is the extent of the result), and the op's output_pad.
std::pair<Windows, Size> spread_windows(NodeContext& context, const Extents& x, const Extents& kernel) {
  const std::size_t axes = kernel.size();
  Windows windows = stated_windows(context, x, kernel);
  const Extents padding = window_numbers(context, "output_padding", 0, axes, 0);
  Extents wanted = context.integers("output_shape").value_or(Extents{});
  if (wanted.size() == axes + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != axes) context.invalid("has an output_shape of " + text(wanted));
  const std::string automatic = auto_pad_of(context);
  Size output_pad = 0;
  for (std::size_t i = 0; i < axes; ++i) {
    Windows::Along& a = windows[i];
    const std::int64_t whole = a.stride * (a.input - 1) + a.span() + padding[i];
    if (automatic.starts_with("SAME") || !wanted.empty()) {
      const std::int64_t total = whole - (wanted.empty() ? a.input * a.stride : wanted[i]);
      a.begin = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      a.end = total - a.begin;
    } else if (!automatic.empty()) {
      a.begin = a.end = 0;
    }
    a.count = whole - a.begin - a.end;
    const std::int64_t more = padding[i] + a.begin - a.end;
    if (a.begin < 0 || more < 0 || more >= a.stride)
      throw Refusal{"its pads are " + std::to_string(a.begin) + " at the beginning and " + std::to_string(a.end) +
                    " at the end of an axis, with " + std::to_string(padding[i]) +
                    " more: together they must add less than a stride at the end"};
    narrow(context, a.begin, 0, "pad");
    (i == 0 ? output_pad.h : output_pad.w) = static_cast<int>(more);
  }
  return {windows, output_pad};
}

void import_conv_transpose(NodeContext& context) {
  const DynamicValue& x = context.dynamic(0);
  const Constant& w = context.constant(1, "its weights");
  const Extents own = extents(x.view);
  demand_extents(context, w);
  const Value image = as_image(context, x);
  const int groups = narrow(context, context.integer("group", 1), 1, "group");
  const int channels = narrow(context, element_count({w.extents[1], groups}).value_or(0), 1, "number of channels");
  if (w.extents[0] != image.shape().c || image.shape().c % groups != 0 || w.count() == 0)
    context.invalid("has weights of " + text(w.extents) + ", " + std::to_string(groups) + " groups, and an input of " +
                    text(own));
  const auto [windows, output_pad] = spread_windows(context, own, Extents(w.extents.begin() + 2, w.extents.end()));
  const ConvTranspose op{.channels = channels, .kernel = 1, .output_pad = output_pad, .groups = groups};
  append_convolution(context, x, image, op, windows, {context.input_name(1)});
}

}  // namespace

Operators conv_operators() { return {{{"Conv"}, import_conv}, {{"ConvTranspose"}, import_conv_transpose}}; }

}  // namespace lamina::onnx
