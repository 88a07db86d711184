#pragma once
// What operators do to extents, whether the numbers are known or not. FileError where operands do not fit.

#include <optional>
#include <vector>

#include "attributes.h"
#include "constant.h"

namespace lamina::onnx {

/// What Shape makes of a value of those extents.
Constant shape_constant(const Attributes&, const Extents&);

Extents reshape_extents(const Attributes&, const Extents& of, const Extents& wanted);
/// Reshape, Flatten, Squeeze, Unsqueeze: `list` is the attribute or operand of the name that list_name() gives.
Extents regrouped(const Attributes&, const Extents& of, const std::optional<Extents>& list);
const char* list_name(const Attributes&);
std::vector<std::size_t> permutation(const Attributes&, std::size_t rank);

/// The extents of two operands together, aligned at the last axis.
Extents broadcast(const Attributes&, const Extents&, const Extents&);
/// The extents of the second operand of an Add, Sub, Mul, Div, Pow or Equal as they are aligned at the last axis of the
/// first, which is of that rank: before opset 7 an attribute says at which of its axes they begin.
Extents aligned(const Attributes&, std::int64_t opset, const Extents& its, std::size_t rank);

}  // namespace lamina::onnx
