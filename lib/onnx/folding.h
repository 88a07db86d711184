#pragma once
// The operators that are folded: nodes whose inputs are all known while the model is read. They compute shapes and
// weights.

#include <functional>

#include "node_context.h"

namespace lamina::onnx {

/// Computes the result of a node from its constants, without its origin. Throws FileError for operands that do not
/// fit, Refusal for a node that is not folded.
using Function = std::function<Constant(const NodeContext&)>;
/// Null if the operator is not folded.
const Function* find_folding(std::string_view op_type);

/// A result of these extents, with memory for its numbers.
Constant blank(const NodeContext&, ElementType, Extents);

/// A constant under other extents, its numbers in the same order.
Constant with_extents(const NodeContext&, const Constant&, Extents);

// fold_layers.cpp
Constant fold_batch_norm(const NodeContext&);
Constant fold_clip(const NodeContext&);
ElementType cast_type(const NodeContext&);  ///< what a Cast or CastLike makes
Constant fold_cast(const NodeContext&);
Constant fold_range(const NodeContext&);
Constant fold_matmul(const NodeContext&);

}  // namespace lamina::onnx
