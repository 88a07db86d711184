#pragma once
// What of a model is not read: nodes of one operator with the same reason are told together.

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

  /// No operator: of the model itself. No reason: nobody knows whether the node would be read.
  void add(std::string_view op, const std::string& node, const std::string& why);
  bool empty() const { return kinds_.empty(); }
  /// What an error says after the name of the file: at most ten lines, unless each node has its own.
  std::string text(std::int64_t opset) const;

 private:
  struct Kind {
    std::string op, first, why;
    std::size_t count = 0;
  };

  bool each_;
  std::vector<Kind> kinds_{};
  std::map<std::string, std::size_t> places_{};  ///< of kinds, by operator and reason
};

}  // namespace lamina::onnx
