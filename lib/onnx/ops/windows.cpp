// Windows by attributes: explicit pads, or auto_pad.

#include "windows.h"

#include <algorithm>

namespace lamina::onnx {
namespace {

constexpr std::int64_t most = 1 << 30;

std::int64_t windows_in(std::int64_t room, std::int64_t stride, Rounding rounding) {
  if (rounding == Rounding::up) room += stride - 1;
  return room < 0 ? 0 : room / stride + 1;
}

void auto_pad(Windows::Along& a, const std::string& how) {
  const bool same = how.starts_with("SAME"), lower = how == "SAME_LOWER";
  a.begin = a.end = 0;
  a.count = same ? (a.input - 1) / a.stride + 1 : windows_in(a.input - a.span(), a.stride, Rounding::down);
  if (!same) return;
  const std::int64_t total = std::max<std::int64_t>((a.count - 1) * a.stride + a.span() - a.input, 0);
  a.begin = lower ? total - total / 2 : total / 2;
  a.end = total - a.begin;
}

bool has_equal_pads(const Windows::Along& a, Rounding how) { return a.count_with(a.begin, a.begin, how) == a.count; }

}  // namespace

void demand_planes(std::size_t rank) {
  if (rank > 4) throw Refusal{std::to_string(rank - 2) + " axes of space are not supported: one or two are"};
}

std::int64_t Windows::Along::count_with(std::int64_t before, std::int64_t after, Rounding how) const {
  const std::int64_t windows = windows_in(input + before + after - span(), stride, how);
  return how == Rounding::up && (windows - 1) * stride >= input + before ? windows - 1 : windows;
}

std::string auto_pad_of(const Attributes& node) {
  std::string automatic = node.text("auto_pad", "");
  if (!automatic.empty() && !is_any_of(automatic, "SAME_UPPER SAME_LOWER VALID NOTSET"))
    node.invalid("has the auto_pad " + automatic.substr(0, 20));
  return automatic == "NOTSET" ? "" : automatic;
}

bool have_equal_pads(const Windows& windows, Rounding how) {
  return std::ranges::all_of(windows.along, [&](const Windows::Along& a) { return has_equal_pads(a, how); });
}

Value append_pad(NodeContext& context, Value image, Windows& windows, const std::array<std::int64_t, 2>& before,
                 const std::array<std::int64_t, 2>& after, double number) {
  Pad pad{.before = 0, .after = 0, .value = number};
  for (std::size_t i = 0; i < 2; ++i) {
    (i == 0 ? pad.before.h : pad.before.w) = narrow(context, before[i], 0, "pad");
    (i == 0 ? pad.after.h : pad.after.w) = narrow(context, after[i], 0, "pad");
    windows[i].input += before[i] + after[i];
    windows[i].begin -= before[i];
    windows[i].end -= after[i];
  }
  return context.append(pad, {image}, context.name() + ".pad");
}

Value with_equal_pads(NodeContext& context, Value image, Windows& windows) {
  std::array<std::int64_t, 2> before{}, after{};
  for (std::size_t i = 0; i < 2; ++i) {
    const Windows::Along& a = windows[i];
    if (has_equal_pads(a, Rounding::down)) continue;
    before[i] = a.begin - std::min(a.begin, a.end);
    after[i] = a.end - std::min(a.begin, a.end);
  }
  return append_pad(context, image, windows, before, after);
}

Extents window_numbers(const Attributes& node, const char* name, std::int64_t otherwise, std::size_t size,
                       std::int64_t least) {
  const Extents numbers = node.integers(name).value_or(Extents(size, otherwise));
  if (numbers.size() != size)
    node.invalid("has " + std::to_string(numbers.size()) + " " + name + " for " + std::to_string(size));
  for (const std::int64_t number : numbers)
    if (number < least || number > most) node.invalid("has " + std::to_string(number) + " among its " + name);
  return numbers;
}

Windows stated_windows(const Attributes& node, const Extents& input, const std::optional<Extents>& kernel) {
  const std::size_t axes = input.size() - 2;
  if (!kernel && !node.has("kernel_shape")) node.invalid("has no kernel_shape");
  const Extents kernels = kernel ? *kernel : window_numbers(node, "kernel_shape", 1, axes, 1);
  if (kernel && node.has("kernel_shape") && window_numbers(node, "kernel_shape", 1, axes, 1) != *kernel)
    node.invalid("has a kernel_shape that differs from its weights' kernel, " + text(*kernel));
  const Extents strides = window_numbers(node, "strides", 1, axes, 1);
  const Extents dilations = window_numbers(node, "dilations", 1, axes, 1);
  const Extents pads = window_numbers(node, "pads", 0, 2 * axes, 0);
  Windows windows;
  for (std::size_t i = 0; i < axes; ++i) {
    if (kernels[i] > most) node.invalid("has a kernel of " + std::to_string(kernels[i]));
    windows[i] = {kernels[i], strides[i], pads[i], pads[axes + i], dilations[i], input[i + 2]};
  }
  return windows;
}

Windows windows_of(const NodeContext& context, const DynamicValue& x, const std::optional<Extents>& kernel) {
  const Extents inputs = extents(x.view);  // in the file's order; as_image() checks that the value is an image
  Windows windows = stated_windows(context, inputs, kernel);
  windows.rounding = !kernel && context.integer("ceil_mode", 0) != 0 ? Rounding::up : Rounding::down;
  const std::string automatic = auto_pad_of(context);
  const Pad pad = x.padding.value_or(Padding{}).op;
  for (std::size_t i = 0; i + 2 < inputs.size(); ++i) {
    Windows::Along& a = windows[i];
    a.begin += i == 0 ? pad.before.h : pad.before.w;
    a.end += i == 0 ? pad.after.h : pad.after.w;
    if (!automatic.empty()) {
      auto_pad(a, automatic);
    } else {
      a.count = a.count_with(a.begin, a.end, windows.rounding);
    }
    if (a.count < 1) context.invalid("has no window in its input of " + text(inputs));
  }
  return windows;
}

}  // namespace lamina::onnx
