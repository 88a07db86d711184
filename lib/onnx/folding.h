#pragma once
// What the folded operators are made of.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "attributes.h"
#include "constant.h"

namespace lamina::onnx {

struct Folding {
  const Attributes& node;
  std::int64_t opset;
  const std::vector<const Constant*>& inputs;
  const std::filesystem::path& model;
  const std::function<void(std::int64_t)>& consume_budget;

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  const Constant& in(std::size_t i) const {
    if (!has(i)) node.invalid("lacks its input " + std::to_string(i));
    return *inputs[i];
  }
  double scalar(std::size_t i) const {
    if (in(i).count() != 1) node.invalid("has " + text(in(i).extents) + " where it takes one number");
    return in(i).at(0);
  }
  std::optional<Extents> whole(std::size_t i) const {
    return has(i) ? std::optional(node.list(*inputs[i])) : std::nullopt;
  }
  /// An attribute up to some opset, an input from then on.
  std::optional<Extents> attribute_or_input(const char* name, std::size_t i) const {
    std::optional<Extents> found = node.integers(name);
    return found ? found : whole(i);
  }
};

using Function = std::function<Constant(const Folding&)>;

/// FileError for extents that no memory can hold.
std::int64_t counted(const Folding&, const Extents&);

/// A result of those extents, with memory for its numbers.
Constant blank(const Folding&, ElementType, Extents);

/// The same numbers in order under other extents.
Constant with_extents(const Folding&, const Constant&, Extents);

// fold_layers.cpp
Constant fold_batch_norm(const Folding&);
Constant fold_clip(const Folding&);
Constant fold_cast(const Folding&);
Constant fold_range(const Folding&);
Constant fold_matmul(const Folding&);

}  // namespace lamina::onnx
