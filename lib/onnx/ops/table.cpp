// Which function imports which operator.

#include <map>

#include "operators.h"

namespace lamina::onnx {

namespace {

const std::map<std::string_view, Operator>& table() {
  static const std::map<std::string_view, Operator> all = [] {
    std::map<std::string_view, Operator> named = {
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
        {"Flatten", import_flatten},
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
        {"Reshape", import_reshape},
        {"Shape", import_shape},
        {"Sigmoid", import_sigmoid},
        {"Size", import_size},
        {"Slice", import_slice},
        {"Softmax", import_softmax},
        {"Split", import_split},
        {"Squeeze", import_squeeze},
        {"Sub", import_arithmetic},
        {"Sum", import_sum},
        {"Tanh", import_tanh},
        {"Transpose", import_transpose},
        {"Unsqueeze", import_unsqueeze},
    };
    for (const char* folded :
         {"Abs", "Ceil", "Constant", "ConstantOfShape", "Equal", "Exp", "Expand", "Floor", "Mod", "Neg", "Not", "Range",
          "Reciprocal", "ReduceL2", "ReduceProd", "ReduceSum", "Sqrt", "Where"}) {
      named.emplace(folded, fold_or_refuse);
    }
    return named;
  }();
  return all;
}

}  // namespace

Operator find_operator(std::string_view op_type) {
  const auto found = table().find(op_type);
  return found == table().end() ? nullptr : found->second;
}

}  // namespace lamina::onnx
