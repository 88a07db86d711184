// Conv. If pads differ at the two ends, an op Pad comes before it.

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
  Value image = as_image(x);
  const int channels = narrow(context, w.extents[0], 1, "number of channels");
  const int groups = narrow(context, node.integer("group", 1), 1, "group");
  if (element_count({w.extents[1], groups}) != image.shape().c || channels % groups != 0 || w.count() == 0) {
    node.invalid("has weights of " + text(w.extents) + ", " + std::to_string(groups) + " groups, and an input of " +
                 text(extents(x.view)));
  }
  Windows windows = windows_of(context, x, kernel);
  if (!have_equal_pads(windows)) image = with_equal_pads(context, image, windows);
  for (const Windows::Along& a : windows.along) narrow(context, a.begin, 0, "pad");

  std::vector<double> bias;
  WeightSource bias_source;
  if (context.has(2)) {
    bias_source.value = context.input_name(2);
    const Constant& b = context.constant(2, "its bias");
    if (b.count() != channels)
      node.invalid("has a bias of " + text(b.extents) + " for " + std::to_string(channels) + " channels");
    bias = context.numbers(b);
    drop_zeros(context, bias, 2);
  }
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

}  // namespace
Operators conv_operators() { return {{{"Conv"}, import_conv}}; }

}  // namespace lamina::onnx
