// Conv and ConvTranspose. If pads of a Conv differ at the two ends, an op Pad comes before it; those of a ConvTranspose
// are pads of the smaller end and an output_pad.

#include <algorithm>

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

/// The node's own bias. Empty: it has none, or zeros that do not train.
std::vector<double> own_bias(NodeContext& context, int channels, WeightSource& source) {
  if (!context.has(2)) return {};
  source.value = context.input_name(2);
  const Constant& b = context.constant(2, "its bias");
  if (b.count() != channels)
    context.attributes().invalid("has a bias of " + text(b.extents) + " for " + std::to_string(channels) + " channels");
  std::vector<double> bias = context.numbers(b);
  drop_zeros(context, bias, 2);
  return bias;
}

void import_conv(NodeContext& context) {
  const Attributes& node = context.attributes();
  const bool own = context.padded(0).padding && context.padded(0).padding->number == 0 && !pads_itself(node);
  const Constant& w = context.constant(1, "its weights");
  const std::size_t rank = (own ? context.padded(0) : context.dynamic(0)).view.size();
  if (rank < 3 || rank != w.extents.size()) {
    node.invalid("has an input of " + text(context.extents(0)) + " and weights of " + text(w.extents));
  }
  demand_planes(rank);
  const Extents kernel(w.extents.begin() + 2, w.extents.end());
  const bool fuses = own && have_equal_pads(windows_of(context, context.padded(0), kernel));
  const DynamicValue& x = fuses ? context.padded(0) : context.dynamic(0);
  Value image = as_image(context, x);
  const int channels = narrow(context, w.extents[0], 1, "number of channels");
  const int groups = narrow(context, node.integer("group", 1), 1, "group");
  if (element_count({w.extents[1], groups}) != image.shape().c || channels % groups != 0 || w.count() == 0) {
    node.invalid("has weights of " + text(w.extents) + ", " + std::to_string(groups) + " groups, and an input of " +
                 text(extents(x.view)));
  }
  Windows windows = windows_of(context, x, kernel);
  if (!have_equal_pads(windows)) image = with_equal_pads(context, image, windows);
  for (const Windows::Along& a : windows.along) narrow(context, a.begin, 0, "pad");

  WeightSource bias_source;
  std::vector<double> bias = own_bias(context, channels, bias_source);
  Extents result = extents(x.view);
  result[1] = channels;
  result[2] = windows[0].count;
  if (rank > 3) result[3] = windows[1].count;
  if (bias.empty()) bias = context.fuse_bias(result, 1, bias_source);

  const bool blurs = is_blur(context, w, groups);
  if (blurs) context.note(context.input_name(1), false);
  const Value y = context.append(Conv{.channels = channels,
                                      .kernel = windows.kernel(),
                                      .stride = windows.stride(),
                                      .pad = windows.begin(),
                                      .dilation = windows.dilation(),
                                      .groups = groups,
                                      .bias = !bias.empty()},
                                 {image}, context.name());
  context.weights(y, "weight", {channels, w.extents[1], windows[0].kernel, windows[1].kernel}, context.numbers(w),
                  w.type, blurs ? WeightSource{} : WeightSource{context.input_name(1)});
  if (!bias.empty()) context.weights(y, "bias", {channels}, std::move(bias), w.type, bias_source);
  context.result({.value = y, .view = layout_of(result, usual_labels(result.size())).view, .type = x.type});
}

/// An axis of a ConvTranspose: its pads at the two ends, and what is added at the end.
struct Spread {
  std::int64_t kernel = 1, stride = 1, dilation = 1, begin = 0, end = 0, more = 0, extent = 1;
};

std::array<Spread, 2> spreads_of(const Attributes& node, const Extents& x, const Extents& kernel) {
  constexpr std::int64_t most = 1 << 30;
  const std::size_t axes = kernel.size();
  const auto list = [&](const char* name, std::int64_t otherwise, std::size_t size, std::int64_t least) {
    const Extents numbers = node.integers(name).value_or(Extents(size, otherwise));
    if (numbers.size() != size) node.invalid("has " + std::to_string(numbers.size()) + " " + name);
    for (const std::int64_t number : numbers)
      if (number < least || number > most) node.invalid("has " + std::to_string(number) + " among its " + name);
    return numbers;
  };
  if (list("kernel_shape", 1, axes, 1) != kernel && node.has("kernel_shape"))
    node.invalid("has a kernel_shape that is not that of its weights, " + text(kernel));
  const Extents strides = list("strides", 1, axes, 1), dilations = list("dilations", 1, axes, 1);
  const Extents pads = list("pads", 0, 2 * axes, 0), more = list("output_padding", 0, axes, 0);
  const std::string automatic = node.text("auto_pad", "NOTSET");
  Extents wanted = node.integers("output_shape").value_or(Extents{});
  if (wanted.size() == axes + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != axes) node.invalid("has an output_shape of " + text(wanted));
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  std::array<Spread, 2> all;
  for (std::size_t i = 0; i < axes; ++i) {
    Spread& a = all[i];
    a = {kernel[i], strides[i], dilations[i], pads[i], pads[axes + i], more[i]};
    if (a.kernel > most) node.invalid("has a kernel of " + std::to_string(a.kernel));
    const std::int64_t whole = a.stride * (x[i + 2] - 1) + a.dilation * (a.kernel - 1) + 1 + a.more;
    if (same || !wanted.empty()) {
      const std::int64_t total = whole - (wanted.empty() ? x[i + 2] * a.stride : wanted[i]);
      a.begin = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      a.end = total - a.begin;
    } else if (automatic == "VALID") {
      a.begin = a.end = 0;
    }
    a.extent = whole - a.begin - a.end;
    a.more += a.begin - a.end;
    if (a.begin < 0 || a.more < 0 || a.more >= a.stride)
      throw Refusal{"its pads are " + std::to_string(a.begin) + " at the beginning and " + std::to_string(a.end) +
                    " at the end of an axis, with " + std::to_string(a.more - a.begin + a.end) +
                    " more: together they must add less than a stride at the end"};
  }
  return all;
}

void import_conv_transpose(NodeContext& context) {
  const Attributes& node = context.attributes();
  const DynamicValue& x = context.dynamic(0);
  const Constant& w = context.constant(1, "its weights");
  const Extents own = extents(x.view);
  if (own.size() < 3 || own.size() != w.extents.size())
    node.invalid("has an input of " + text(own) + " and weights of " + text(w.extents));
  demand_planes(own.size());
  const Value image = as_image(context, x);
  const int groups = narrow(context, node.integer("group", 1), 1, "group");
  const int channels = narrow(context, element_count({w.extents[1], groups}).value_or(0), 1, "number of channels");
  if (w.extents[0] != image.shape().c || image.shape().c % groups != 0 || w.count() == 0)
    node.invalid("has weights of " + text(w.extents) + ", " + std::to_string(groups) + " groups, and an input of " +
                 text(own));
  const std::array<Spread, 2> axes = spreads_of(node, own, Extents(w.extents.begin() + 2, w.extents.end()));
  Extents result = own;
  result[1] = channels;
  for (std::size_t i = 2; i < own.size(); ++i) result[i] = axes[i - 2].extent;
  WeightSource bias_source;
  std::vector<double> bias = own_bias(context, channels, bias_source);
  if (bias.empty()) bias = context.fuse_bias(result, 1, bias_source);
  const auto both = [&](std::int64_t Spread::*number) {
    return Size{narrow(context, axes[0].*number, 0, "geometry"), narrow(context, axes[1].*number, 0, "geometry")};
  };
  const Value y = context.append(ConvTranspose{.channels = channels,
                                               .kernel = both(&Spread::kernel),
                                               .stride = both(&Spread::stride),
                                               .pad = both(&Spread::begin),
                                               .output_pad = both(&Spread::more),
                                               .dilation = both(&Spread::dilation),
                                               .groups = groups,
                                               .bias = !bias.empty()},
                                 {image}, context.name());
  context.weights(y, "weight", {w.extents[0], w.extents[1], axes[0].kernel, axes[1].kernel}, context.numbers(w), w.type,
                  WeightSource{context.input_name(1)});
  if (!bias.empty()) context.weights(y, "bias", {channels}, std::move(bias), w.type, bias_source);
  context.result({.value = y, .view = layout_of(result, usual_labels(result.size())).view, .type = x.type});
}

}  // namespace
Operators conv_operators() { return {{{"Conv"}, import_conv}, {{"ConvTranspose"}, import_conv_transpose}}; }

}  // namespace lamina::onnx
