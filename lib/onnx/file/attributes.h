#pragma once
// A node of the file with its attributes by name.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "constant.h"
#include "messages.h"

namespace lamina::onnx {

/// Why a valid node cannot be expressed, and what would be needed. The error lists the refusals of all nodes.
struct Refusal {
  std::string why;
  bool of_order = false;  ///< whether the order of the axes in memory is the reason, and not the extents
};

class Attributes {
 public:
  Attributes(const NodeMessage& node, std::string file) : node_(&node), file_(std::move(file)) {}

  const NodeMessage& node() const { return *node_; }
  /// The name of the node, else of its first output.
  std::string name() const;
  /// "model.onnx: node 'conv1' (Conv)": how a message begins.
  std::string where() const;

  bool has(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double number(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string otherwise) const;
  std::optional<Extents> integers(std::string_view name) const;
  /// The value in every form that the attribute has; empty if it is absent.
  AttributeValue value(std::string_view name) const;
  /// The whole numbers of an operand with a number for each axis or output.
  Extents list(const Constant&) const;

  /// Throws FileError that begins with where().
  [[noreturn]] void invalid(const std::string& what) const;

 private:
  const NodeMessage* node_;
  std::string file_;
};

/// The double nearest to the shortest decimal of a float: 0.1 as a program wrote it, not 0.100000001.
double as_written(float);

/// Whether a name is one of the words, a list with spaces.
bool is_any_of(std::string_view name, std::string_view words);

/// The index of an axis. A negative `axis` counts from the end. FileError unless it is one of `rank` axes.
std::size_t axis_of(const Attributes&, std::int64_t axis, std::size_t rank);

}  // namespace lamina::onnx
