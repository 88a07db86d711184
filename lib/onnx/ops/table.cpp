// Which function imports which operator.

#include <map>

#include "operators.h"

namespace lamina::onnx {

Operator find_operator(std::string_view op_type) {
  static const std::map<std::string_view, Operator> all = {
      {"Add", import_add},
      {"AveragePool", import_average_pool},
      {"BatchNormalization", import_batch_norm},
      {"Bernoulli", import_random},
      {"Cast", import_cast},
      {"CastLike", import_cast},
      {"Clip", import_clip},
      {"Concat", import_concat},
      {"Conv", import_conv},
      {"Div", import_arithmetic},
      {"Dropout", import_dropout},
      {"Flatten", import_regroup},
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
      {"Max", import_limit},
      {"MaxPool", import_max_pool},
      {"Min", import_limit},
      {"Mul", import_arithmetic},
      {"Pad", import_pad},
      {"Pow", import_pow},
      {"RandomNormal", import_random},
      {"RandomNormalLike", import_random},
      {"RandomUniform", import_random},
      {"RandomUniformLike", import_random},
      {"ReduceMax", import_reduce},
      {"ReduceMean", import_reduce},
      {"Relu", import_relu},
      {"Reshape", import_regroup},
      {"Shape", import_shape},
      {"Sigmoid", import_sigmoid},
      {"Size", import_size},
      {"Slice", import_slice},
      {"Softmax", import_softmax},
      {"Split", import_split},
      {"Squeeze", import_regroup},
      {"Sub", import_arithmetic},
      {"Sum", import_sum},
      {"Tanh", import_tanh},
      {"Transpose", import_transpose},
      {"Unsqueeze", import_regroup},
  };
  const auto found = all.find(op_type);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace lamina::onnx
