// Conv. Pads that differ at the two ends become zeros in the weights: the larger pad at both ends, and a kernel that is
// longer by the difference at the end that had less. Over slices, it is a convolution over channels x slices with
// weights of 0 where a window does not have a slice. The sums are the same.

#include <algorithm>

#include "windows.h"

namespace lamina::onnx {
namespace {

/// How many weights of zero go before and after those of the file, along rows or columns.
struct Longer {
  std::int64_t before = 0, after = 0;
};

/// Makes the pads equal, and says what the kernel needs for it.
Longer equal_pads(Windows::Along& a) {
  if (a.count_with(a.begin, Rounding::down) == a.count) return {};  // the end's pad does not matter, or is the same
  const std::int64_t longer = std::max(a.begin, a.end) - std::min(a.begin, a.end);
  if (longer % a.dilation != 0) {
    throw Refusal{"its pads differ by " + std::to_string(longer) + " at the two ends and its dilation is " +
                  std::to_string(a.dilation) + ": it would need an op Pad"};
  }
  const std::int64_t zeros = longer / a.dilation;
  const Longer result = a.end > a.begin ? Longer{.before = zeros} : Longer{.after = zeros};
  a.begin = a.end = std::max(a.begin, a.end);
  a.kernel += zeros;
  return result;
}

std::vector<double> with_zeros(const Call& call, const Constant& w, const Windows& windows, const Longer& rows,
                               const Longer& columns, std::int64_t filters) {
  const std::int64_t height = windows[0].kernel, width = windows[1].kernel;
  const std::int64_t own_height = height - rows.before - rows.after, own_width = width - columns.before - columns.after;
  const std::optional<std::int64_t> count = element_count({filters, height, width});
  if (!count) call.attributes().invalid("has pads that no memory can hold");
  call.charge(*count);
  std::vector<double> longer(static_cast<std::size_t>(*count), 0);
  for (std::int64_t filter = 0; filter < filters; ++filter) {
    for (std::int64_t r = 0; r < own_height; ++r) {
      for (std::int64_t s = 0; s < own_width; ++s) {
        longer[static_cast<std::size_t>((filter * height + r + rows.before) * width + s + columns.before)] =
            w.at((filter * own_height + r) * own_width + s);
      }
    }
  }
  return longer;
}

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
      for (std::int64_t k = 0; k < kernel; ++k) {
        const std::int64_t slice = window * slices.stride - slices.begin + k * slices.dilation;
        if (slice < 0 || slice >= slices.input) continue;
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
  const Running& x = own ? call.padded(0) : call.running(0);
  const Constant& w = call.constant(1, "its weights");
  if (x.view.size() < 3 || x.view.size() != w.extents.size()) {
    node.invalid("has an input of " + text(extents(x.view)) + " and weights of " + text(w.extents));
  }
  if (x.view.size() > 5)
    throw Refusal{"its input has " + std::to_string(x.view.size()) + " axes: it would need an op for them"};
  const bool in_space = x.view.size() == 5;
  const Value image = as_volume(x);
  const std::int64_t input_slices = in_space ? extent(x.view[2]) : 1;
  const int channels = narrow(call, w.extents[0], 1, "number of channels");
  const int groups = narrow(call, node.integer("group", 1), 1, "group");
  if (element_count({w.extents[1], groups, input_slices}) != image.shape().c || channels % groups != 0 ||
      w.count() == 0) {
    node.invalid("has weights of " + text(w.extents) + ", " + std::to_string(groups) + " groups, and an input of " +
                 text(extents(x.view)));
  }
  Windows windows = windows_of(call, x, Extents(w.extents.begin() + 2, w.extents.end()));
  const Longer rows = equal_pads(windows[0]), columns = equal_pads(windows[1]);
  for (const Windows::Along& a : windows.along) {
    narrow(call, a.kernel, 1, "kernel");
    narrow(call, a.begin, 0, "pad");
  }

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

  const std::int64_t filters = w.extents[0] * w.extents[1] * (in_space ? w.extents[2] : 1);
  const bool longer = rows.before + rows.after + columns.before + columns.after > 0;
  std::vector<double> weights = longer ? with_zeros(call, w, windows, rows, columns, filters) : call.numbers(w);
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
                                   .bias = !bias.empty()},
                              {image}, call.name());
  call.weights(y, "weight", {outputs, w.extents[1] * input_slices, windows[0].kernel, windows[1].kernel},
               std::move(weights), w.type);
  if (!bias.empty()) call.weights(y, "bias", {outputs}, std::move(bias), w.type);
  call.result(
      {.value = y, .view = place(result, in_space ? "ncchw" : usual_roles(result.size())).view, .type = x.type});
}

}  // namespace lamina::onnx
