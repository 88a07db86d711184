#pragma once
// Nodes of a model that are refused. Nodes of one operator with the same reason are reported together.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::onnx {

class Refusals {
 public:
  explicit Refusals(bool each) : each_(each) {}  ///< whether each node has a line of its own

  /// Without an operator: a refusal of the model itself. Without a reason: the node could not be judged.
  void add(std::string_view op, const std::string& node, const std::string& why);
  bool empty() const { return kinds_.empty(); }
  /// The text of the error after the file's name: at most ten lines, unless each node has its own.
  std::string text(std::int64_t opset) const;

 private:
  struct Kind {
    std::string op, first, why;
    std::size_t count = 0;
  };

  bool each_;
  std::vector<Kind> kinds_{};
  std::map<std::string, std::size_t> places_{};  ///< indices of kinds_, by operator and reason
};

}  // namespace lamina::onnx
