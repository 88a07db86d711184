// Conv. Where pads differ at the two ends, an op Pad comes before it. Over slices, it is a convolution over channels x
// slices with weights of 0 where a window does not have a slice: the sums are the same, but it is not trainable.

#include <algorithm>

#include "windows.h"

namespace lamina::onnx {
namespace {

/// The weights of a convolution over channels x slices: those of {filters, channels, own slices, plane}, and 0 where a
/// window does not have a slice.
std::vector<double> over_slices(const Call& call, const std::vector<double>& w, const Extents& own,
                                const Windows::Along& slices, std::int64_t plane) {
  const std::int64_t filters = own[0], channels = own[1], kernel = own[2];
  const std::optional<std::int64_t> count = element_count({filters, slices.count, channels, slices.input, plane});
  if (!count) call.attributes().invalid("has slices that no memory can hold");
  call.charge(*count);
  std::vector<double> all(static_cast<std::size_t>(*count), 0);
  for (std::int64_t filter = 0; filter < filters; ++filter) {
    for (std::int64_t window = 0; window < slices.count; ++window) {
      const std::int64_t first = window * slices.stride - slices.begin;
      for (std::int64_t k = first < 0 ? (slices.dilation - 1 - first) / slices.dilation : 0; k < kernel; ++k) {
        const std::int64_t slice = first + k * slices.dilation;
        if (slice >= slices.input) break;  // a kernel may be longer than any number of slices
        for (std::int64_t c = 0; c < channels; ++c) {
          const std::int64_t to = ((filter * slices.count + window) * channels + c) * slices.input + slice;
          std::copy_n(w.begin() + ((filter * channels + c) * kernel + k) * plane, plane, all.begin() + to * plane);
        }
      }
    }
  }
  return all;
}

}  // namespace

void import_conv(Call& call) {
  const Attributes& node = call.attributes();
  const bool own = call.padded(0).padding && call.padded(0).padding->number == 0 && !pads_itself(node);
  const Constant& w = call.constant(1, "its weights");
  const std::size_t rank = (own ? call.padded(0) : call.running(0)).view.size();
  if (rank < 3 || rank != w.extents.size()) {
    node.invalid("has an input of " + text(call.extents(0)) + " and weights of " + text(w.extents));
  }
  if (rank > 5) throw Refusal{"its input has " + std::to_string(rank) + " axes: it would need an op for them"};
  const Extents kernel(w.extents.begin() + 2, w.extents.end());
  const bool absorbs = own && have_equal_pads(windows_of(call, call.padded(0), kernel));
  const Running& x = absorbs ? call.padded(0) : call.running(0);
  const bool in_space = rank == 5;
  Value image = as_volume(x);
  const std::int64_t input_slices = in_space ? extent(x.view[2]) : 1;
  const int channels = narrow(call, w.extents[0], 1, "number of channels");
  const int groups = narrow(call, node.integer("group", 1), 1, "group");
  if (element_count({w.extents[1], groups, input_slices}) != image.shape().c || channels % groups != 0 ||
      w.count() == 0) {
    node.invalid("has weights of " + text(w.extents) + ", " + std::to_string(groups) + " groups, and an input of " +
                 text(extents(x.view)));
  }
  Windows windows = windows_of(call, x, kernel);
  if (!have_equal_pads(windows)) image = with_equal_pads(call, image, windows);
  for (const Windows::Along& a : windows.along) narrow(call, a.begin, 0, "pad");

  std::vector<double> bias;
  if (call.has(2)) {
    const Constant& b = call.constant(2, "its bias");
    if (b.count() != channels)
      node.invalid("has a bias of " + text(b.extents) + " for " + std::to_string(channels) + " channels");
    bias = call.numbers(b);
  }
  Extents result = extents(x.view);
  result[1] = channels;
  if (in_space) result[2] = windows.slices.count;
  result[in_space ? 3 : 2] = windows[0].count;
  if (result.size() > 3) result.back() = windows[1].count;
  if (bias.empty()) bias = call.absorb_affine(result, 1, true).shift;

  std::vector<double> weights = call.numbers(w);
  if (in_space) {
    weights = over_slices(call, weights, w.extents, windows.slices, windows[0].kernel * windows[1].kernel);
    std::vector<double> repeated;
    call.charge(static_cast<std::int64_t>(bias.size()) * windows.slices.count);
    for (const double number : bias)
      repeated.insert(repeated.end(), static_cast<std::size_t>(windows.slices.count), number);
    bias = std::move(repeated);
  }
  const std::int64_t outputs = channels * windows.slices.count;
  const Value y = call.append(Conv{.channels = narrow(call, outputs, 1, "number of channels"),
                                   .kernel = windows.kernel(),
                                   .stride = windows.stride(),
                                   .pad = windows.begin(),
                                   .dilation = windows.dilation(),
                                   .groups = groups,
                                   .bias = !bias.empty(),
                                   .trainable = !in_space},
                              {image}, call.name());
  call.weights(y, "weight", {outputs, w.extents[1] * input_slices, windows[0].kernel, windows[1].kernel},
               std::move(weights), w.type);
  if (!bias.empty()) call.weights(y, "bias", {outputs}, std::move(bias), w.type);
  call.result(
      {.value = y, .view = place(result, in_space ? "ncchw" : usual_roles(result.size())).view, .type = x.type});
}

}  // namespace lamina::onnx
