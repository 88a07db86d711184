#pragma once
// Shape inference, for constants and for computed values. FileError where operands do not fit.

#include <optional>
#include <vector>

#include "lib/onnx/file/attributes.h"
#include "lib/onnx/file/constant.h"

namespace lamina::onnx {

/// The result of a Shape of a value with these extents.
Constant shape_constant(const Attributes&, const Extents&);

Extents reshape_extents(const Attributes&, const Extents& of, const Extents& wanted);
/// Reshape, Flatten, Squeeze, Unsqueeze: `list` is the attribute or operand of the name that list_name() gives.
Extents regrouped(const Attributes&, const Extents& of, const std::optional<Extents>& list);
const char* list_name(const Attributes&);
std::vector<std::size_t> permutation(const Attributes&, std::size_t rank);

/// The extents of the result of two operands that are broadcast, aligned at the last axis.
Extents broadcast(const Attributes&, const Extents&, const Extents&);
/// The extents of the second operand of an Add, Sub, Mul, Div, Pow or Equal, padded so that they align at the last of
/// the first operand's `rank` axes. Before opset 7 an attribute names the axis of the first where they begin.
Extents aligned(const Attributes&, std::int64_t opset, const Extents& its, std::size_t rank);

}  // namespace lamina::onnx
