#pragma once
// Roles of the file's tensors in the exported model: parameters, which train, or buffers and numbers.

#include <string>
#include <string_view>
#include <unordered_map>

#include "constant.h"
#include "lamina/onnx.h"
#include "messages.h"

namespace lamina::onnx {

class Origins {
 public:
  /// Throws UsageError for a name of the options that no initializer has.
  Origins(const ModelMessage&, const OnnxOptions&, const std::string& file);

  Origin of(std::string_view initializer) const;
  /// The only parameter that an initializer was computed from, as the file states it; empty: none, or several.
  std::string_view source_of(std::string_view initializer) const;
  /// Whether the file states its parameters, as PyTorch's exporter with dynamo=True does.
  bool are_stated() const { return !stated_.empty(); }
  bool is_given(std::string_view initializer) const { return given_.contains(initializer); }

 private:
  Origin by_file(std::string_view initializer) const;

  bool of_pytorch_;
  std::unordered_map<std::string_view, Origin> stated_;                 ///< roles in the file, also of buffers
  std::unordered_map<std::string_view, std::string_view> folded_from_;  ///< lists of names, by initializer
  std::unordered_map<std::string_view, Origin> given_;                  ///< roles by OnnxOptions::trains
};

}  // namespace lamina::onnx
