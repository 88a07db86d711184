#pragma once
// What the tensors of a file are in the model that was exported: parameters, which train, or buffers and numbers.

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
  /// The one parameter that the file says an initializer was computed from; empty: it does not say one.
  std::string_view source_of(std::string_view initializer) const;
  /// Whether the file says it: those that PyTorch's exporter writes with dynamo=True do.
  bool are_stated() const { return !stated_.empty(); }

 private:
  Origin by_file(std::string_view initializer) const;

  bool of_pytorch_;
  std::unordered_map<std::string_view, Origin> stated_;                 ///< what it says of others, too
  std::unordered_map<std::string_view, std::string_view> folded_from_;  ///< by initializer: a list of names
  std::unordered_map<std::string_view, Origin> given_;                  ///< by the options
};

}  // namespace lamina::onnx
