#pragma once
// Nodes whose inputs are all known while the model is read: chains that compute shapes, and weights.

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "attributes.h"
#include "constant.h"

namespace lamina::onnx {

/// The result of a node on constants, or nothing if its operator is not among those that are folded. A null input is an
/// absent one. `consume_budget` is called with the numbers that the result has, before there is memory for them.
/// Tensors of attributes may have their data beside `model`. Throws FileError for operands that do not fit, Refusal for
/// what is not folded.
std::optional<Constant> fold(const Attributes&, std::int64_t opset, const std::vector<const Constant*>& inputs,
                             const std::filesystem::path& model,
                             const std::function<void(std::int64_t)>& consume_budget);

/// Whether an operator is among those that are folded.
bool is_folded(std::string_view op_type);

/// What Shape makes of a value of those extents.
Constant shape_constant(const Attributes&, const Extents&);

/// What these do to the extents of any value, constant or dynamic: the extents of the result. FileError if they do not
/// fit.
Extents reshape_extents(const Attributes&, const Extents& of, const Extents& wanted);
/// Reshape, Flatten, Squeeze, Unsqueeze: `list` is the attribute or operand of the name that list_name() gives.
Extents regrouped(const Attributes&, const Extents& of, const std::optional<Extents>& list);
const char* list_name(const Attributes&);
std::vector<std::size_t> permutation(const Attributes&, std::size_t rank);

/// Which part of an axis a Slice takes.
struct Range {
  std::int64_t first, count, step;
};
/// The part of each axis that the operands of a Slice take; null ones are absent.
std::vector<Range> slice_ranges(const Attributes&, const Extents& of, const Extents& starts, const Extents& ends,
                                const std::optional<Extents>& axes, const std::optional<Extents>& steps);

/// The extents of two operands together, aligned at the last axis; FileError if they do not fit.
Extents broadcast(const Attributes&, const Extents&, const Extents&);

}  // namespace lamina::onnx
