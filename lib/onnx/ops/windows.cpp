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

void auto_pad(Windows::Along& a, bool same, bool lower) {
  a.begin = a.end = 0;
  a.count = same ? (a.input - 1) / a.stride + 1 : windows_in(a.input - a.span(), a.stride, Rounding::down);
  if (!same) return;
  const std::int64_t total = std::max<std::int64_t>((a.count - 1) * a.stride + a.span() - a.input, 0);
  a.begin = lower ? total - total / 2 : total / 2;
  a.end = total - a.begin;
}

bool is_same(std::string_view automatic) { return automatic == "SAME_UPPER" || automatic == "SAME_LOWER"; }

bool has_equal_pads(const Windows::Along& a) { return a.count_with(a.begin, Rounding::down) == a.count; }

}  // namespace

Value as_volume(const Running& x) {
  if (x.view.size() != 5) return as_image(x);
  const Shape s = x.value.shape();
  const std::int64_t slices = extent(x.view[2]), plane = s.plane();
  const View wanted = {axis(s.n, s.image()), axis(s.c / slices, slices * plane), axis(slices, plane), axis(s.h, s.w),
                       axis(s.w, 1)};
  if (s.c % slices != 0 || x.view != wanted) {
    throw Refusal{"its input of " + text(extents(x.view)) + " is kept as " + to_string(s) +
                  ", not with slices among its channels: it would need an op that moves numbers (Reshape, Transpose)"};
  }
  return x.value;
}

std::int64_t Windows::Along::count_with(std::int64_t pad, Rounding how) const {
  std::int64_t windows = windows_in(input + 2 * pad - span(), stride, how);
  if (how == Rounding::up && (windows - 1) * stride >= input + pad) --windows;
  return windows;
}

bool pads_itself(const Attributes& node) {
  const std::string automatic = node.text("auto_pad", "NOTSET");
  return automatic != "NOTSET" && !automatic.empty();
}

bool have_equal_pads(const Windows& windows) {
  return std::all_of(windows.along.begin(), windows.along.end(), has_equal_pads);
}

Value with_equal_pads(Call& call, Value image, Windows& windows) {
  std::array<int, 2> before{}, after{};
  for (std::size_t i = 0; i < 2; ++i) {
    Windows::Along& a = windows[i];
    if (has_equal_pads(a)) continue;
    const std::int64_t both = std::min(a.begin, a.end);
    before[i] = narrow(call, a.begin - both, 0, "pad");
    after[i] = narrow(call, a.end - both, 0, "pad");
    a.input += before[i] + after[i];
    a.begin = a.end = both;
  }
  return call.append(Pad{.before = {before[0], before[1]}, .after = {after[0], after[1]}}, {image},
                     call.name() + ".pad");
}

Windows sizes_of(const Call& call, const Running& x, const std::optional<Extents>& kernel) {
  const Attributes& node = call.attributes();
  const Extents inputs = extents(x.view);  // those of the file: whether they are an image is asked by as_volume()
  const std::size_t axes = inputs.size() - 2;
  const auto list = [&](const char* name, std::int64_t otherwise, std::size_t size, std::int64_t least) {
    const Extents numbers = node.integers(name).value_or(Extents(size, otherwise));
    if (numbers.size() != size) {
      node.invalid("has " + std::to_string(numbers.size()) + " " + name + " for " + std::to_string(size));
    }
    for (const std::int64_t number : numbers) {
      if (number < least || number > most) node.invalid("has " + std::to_string(number) + " among its " + name);
    }
    return numbers;
  };
  if (!kernel && !node.has("kernel_shape")) node.invalid("has no kernel_shape");
  const Extents kernels = kernel ? *kernel : list("kernel_shape", 1, axes, 1);
  if (kernel && node.has("kernel_shape") && list("kernel_shape", 1, axes, 1) != *kernel) {
    node.invalid("has a kernel_shape that is not that of its weights, " + text(*kernel));
  }
  const Extents strides = list("strides", 1, axes, 1), dilations = list("dilations", 1, axes, 1);
  const Extents pads = list("pads", 0, 2 * axes, 0);
  const std::string automatic = node.text("auto_pad", "NOTSET");
  if (!is_same(automatic) && automatic != "VALID" && automatic != "NOTSET" && !automatic.empty()) {
    node.invalid("has the auto_pad " + automatic.substr(0, 20));
  }
  const Padding padding = x.padding.value_or(Padding{});
  Windows windows;
  windows.rounding = !kernel && node.integer("ceil_mode", 0) != 0 ? Rounding::up : Rounding::down;
  const std::size_t planes = axes == 3 ? 1 : 0;  // the file's axes before rows and columns
  windows[0].input = inputs[2 + planes];
  windows[1].input = axes == 1 ? 1 : inputs.back();
  if (planes == 1) windows.slices.input = inputs[2];
  for (std::size_t i = 0; i < axes; ++i) {
    Windows::Along& a = i < planes ? windows.slices : windows[i - planes];
    if (kernels[i] > most) node.invalid("has a kernel of " + std::to_string(kernels[i]));
    a.kernel = kernels[i];
    a.stride = strides[i];
    a.dilation = dilations[i];
    a.begin = pads[i];
    a.end = pads[axes + i];
    if (planes == 0) {  // a padding is of rows and columns of images
      a.begin += i == 0 ? padding.top : padding.left;
      a.end += i == 0 ? padding.bottom : padding.right;
    }
  }
  return windows;
}

Windows windows_of(const Call& call, const Running& x, const std::optional<Extents>& kernel) {
  Windows windows = sizes_of(call, x, kernel);
  const std::string automatic = call.attributes().text("auto_pad", "NOTSET");
  const std::size_t axes = x.view.size() - 2, planes = axes == 3 ? 1 : 0;
  for (std::size_t i = 0; i < axes; ++i) {
    Windows::Along& a = i < planes ? windows.slices : windows[i - planes];
    if (is_same(automatic) || automatic == "VALID") {
      auto_pad(a, is_same(automatic), automatic == "SAME_LOWER");
    } else {
      a.count = windows_in(a.input + a.begin + a.end - a.span(), a.stride, windows.rounding);
      if (windows.rounding == Rounding::up && (a.count - 1) * a.stride >= a.input + a.begin) --a.count;
    }
    if (a.count < 1) call.attributes().invalid("has no window in its input of " + text(extents(x.view)));
  }
  return windows;
}

}  // namespace lamina::onnx
