// Which function imports which operator.

#include <map>

#include "operators.h"

namespace lamina::onnx {

namespace {

const std::map<std::string_view, Operator>& table() {
  static const std::map<std::string_view, Operator> all = {
      {"Abs", import_folded},
      {"Add", import_add},
      {"AveragePool", import_average_pool},
      {"BatchNormalization", import_batch_norm},
      {"Cast", import_cast},
      {"Ceil", import_folded},
      {"Clip", import_clip},
      {"Concat", import_concat},
      {"Constant", import_folded},
      {"ConstantOfShape", import_folded},
      {"Conv", import_conv},
      {"Div", import_affine},
      {"Dropout", import_dropout},
      {"Equal", import_folded},
      {"Expand", import_folded},
      {"Flatten", import_flatten},
      {"Floor", import_folded},
      {"Gather", import_gather},
      {"Gemm", import_gemm},
      {"GlobalAveragePool", import_global_average_pool},
      {"GlobalMaxPool", import_global_max_pool},
      {"HardSigmoid", import_hard_sigmoid},
      {"HardSwish", import_hard_swish},
      {"Identity", import_identity},
      {"If", import_if},
      {"LRN", import_lrn},
      {"LSTM", import_lstm},
      {"MatMul", import_matmul},
      {"MaxPool", import_max_pool},
      {"Mul", import_affine},
      {"Neg", import_folded},
      {"Not", import_folded},
      {"Pad", import_pad},
      {"Pow", import_pow},
      {"Range", import_folded},
      {"Reciprocal", import_folded},
      {"ReduceMean", import_reduce_mean},
      {"Relu", import_relu},
      {"Reshape", import_reshape},
      {"Shape", import_shape},
      {"Sigmoid", import_sigmoid},
      {"Size", import_size},
      {"Slice", import_slice},
      {"Softmax", import_softmax},
      {"Split", import_split},
      {"Sqrt", import_folded},
      {"Squeeze", import_squeeze},
      {"Sub", import_affine},
      {"Sum", import_sum},
      {"Tanh", import_tanh},
      {"Transpose", import_transpose},
      {"Unsqueeze", import_unsqueeze},
      {"Where", import_folded},
  };
  return all;
}

}  // namespace

Operator find_operator(std::string_view op_type) {
  const auto found = table().find(op_type);
  return found == table().end() ? nullptr : found->second;
}

std::vector<std::string_view> operator_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, operation] : table()) names.push_back(name);
  return names;
}

}  // namespace lamina::onnx
