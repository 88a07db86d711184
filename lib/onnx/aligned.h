#pragma once
// The alignment of the second operand of an Add, Sub, Mul, Div, Pow or Equal.

#include <cstdint>
#include <string>

#include "attributes.h"
#include "constant.h"

namespace lamina::onnx {

/// The extents of such an operand as they are aligned at the last axis of the first, which is of that rank: before
/// opset 7 an attribute says at which of its axes they begin. FileError if they do not fit.
inline Extents aligned(const Attributes& node, std::int64_t opset, const Extents& its, std::size_t rank) {
  if (opset >= 7 || !node.has("axis") || its.size() >= rank || element_count(its) == 1) return its;
  const std::size_t first = axis_of(node, node.integer("axis", 0), rank);
  if (first + its.size() > rank) {
    node.invalid("has an operand of " + text(its) + " at axis " + std::to_string(first) + " of " +
                 std::to_string(rank));
  }
  Extents all = its;
  all.resize(rank - first, 1);
  return all;
}

}  // namespace lamina::onnx
