// The table of all operators.

#include <map>

#include "operators.h"

namespace lamina::onnx {

const OperatorRow* find_operator(std::string_view op_type) {
  static const std::map<std::string_view, OperatorRow> all = [] {
    std::map<std::string_view, OperatorRow> found;
    for (const auto operators : {arithmetic_operators, channel_operators, conv_operators, elementwise_operators,
                                 linear_operators, lrn_operators, normalisation_operators, pool_operators,
                                 resize_operators, sequence_operators, shape_operators})
      for (const OperatorRow& row : operators())
        for (const std::string_view name : row.op_types) found.emplace(name, row);
    return found;
  }();
  const auto found = all.find(op_type);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace lamina::onnx
