#pragma once
// Kernel, strides, pads and dilations of convolutions and pools, along rows and columns.

#include <array>
#include <cstdint>
#include <optional>

#include "lamina/op.h"
#include "operators.h"

namespace lamina::onnx {

struct Windows {
  struct Along {
    std::int64_t kernel = 1, stride = 1, begin = 0, end = 0, dilation = 1;
    std::int64_t input = 1;
    std::int64_t count = 1;  ///< the number of windows by the operator's definition
    std::int64_t span() const { return dilation * (kernel - 1) + 1; }
    /// Windows if the padding is `pad` at both ends.
    std::int64_t count_with(std::int64_t pad, Rounding) const;
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

/// Whether the node says how to pad by its auto_pad.
bool pads_itself(const Attributes&);

/// Throws a Refusal for a value of more than four axes, as images and channels of volumes have.
void demand_planes(std::size_t rank);

/// By the attributes of the node, for an input of that shape. With `kernel` given, kernel_shape may be absent.
/// A padding of the input is added to the pads.
Windows windows_of(const NodeContext&, const DynamicValue& x, const std::optional<Extents>& kernel);

/// Whether the pads of the front at both ends make as many windows: the pad of the end is the same, or does not matter.
bool have_equal_pads(const Windows&);
/// An op Pad takes these parts of the pads over.
Value append_pad(NodeContext&, Value image, Windows&, const std::array<std::int64_t, 2>& before,
                 const std::array<std::int64_t, 2>& after, double number = 0);
/// An op pads the end that has more; both have the same then.
Value with_equal_pads(NodeContext&, Value image, Windows&);

}  // namespace lamina::onnx
