#pragma once
// Kernel, strides, pads and dilations of convolutions and pools, along rows and columns.

#include <array>
#include <cstdint>
#include <optional>

#include "lamina/op.h"
#include "lib/onnx/operators.h"

namespace lamina::onnx {

struct Windows {
  struct Along {
    std::int64_t kernel = 1, stride = 1, begin = 0, end = 0, dilation = 1;
    std::int64_t input = 1;
    std::int64_t count = 1;  ///< number of windows by the operator's definition
    std::int64_t span() const { return dilation * (kernel - 1) + 1; }
    /// Number of windows with these pads.
    std::int64_t count_with(std::int64_t before, std::int64_t after, Rounding) const;
  };
  std::array<Along, 2> along;  ///< rows, columns; a value of three axes has one column
  Rounding rounding = Rounding::down;

  Along& operator[](std::size_t i) { return along[i]; }
  const Along& operator[](std::size_t i) const { return along[i]; }
  Size kernel() const { return {static_cast<int>(along[0].kernel), static_cast<int>(along[1].kernel)}; }
  Size stride() const { return {static_cast<int>(along[0].stride), static_cast<int>(along[1].stride)}; }
  Size dilation() const { return {static_cast<int>(along[0].dilation), static_cast<int>(along[1].dilation)}; }
  Size begin() const { return {static_cast<int>(along[0].begin), static_cast<int>(along[1].begin)}; }
};

/// The node's rule for its pads; empty: its attributes state them. FileError for a text that the format does not have.
std::string auto_pad_of(const Attributes&);

/// Throws a Refusal for a value of more than four axes, such as a batch of volumes.
void demand_planes(std::size_t rank);

/// An attribute of `size` numbers from `least` to 2^30. Each is `otherwise` if the attribute is absent.
Extents window_numbers(const Attributes&, const char* name, std::int64_t otherwise, std::size_t size,
                       std::int64_t least);
/// Kernels, strides, dilations and pads as the attributes state them. kernel_shape may be absent if `kernel` is given.
Windows stated_windows(const Attributes&, const Extents& input, const std::optional<Extents>& kernel);

/// The windows of a node on its input, with their number. A pending padding of the input is added to the pads.
Windows windows_of(const NodeContext&, const DynamicValue& x, const std::optional<Extents>& kernel);

/// Whether the front pad at both ends gives the same number of windows: the end pad is equal, or does not matter.
bool have_equal_pads(const Windows&, Rounding = Rounding::down);
/// Appends an op Pad for these parts of the pads, and takes them out of the windows.
Value append_pad(NodeContext&, Value image, Windows&, const std::array<std::int64_t, 2>& before,
                 const std::array<std::int64_t, 2>& after, double number = 0);
/// Appends an op Pad for the excess of the larger pads, so that the pads of the windows are equal at both ends.
Value with_equal_pads(NodeContext&, Value image, Windows&);

}  // namespace lamina::onnx
