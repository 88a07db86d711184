#pragma once
// The parts of an LRN as PyTorch's exporters write them: each does its node and returns true if the node is such a
// part.

#include "operators.h"

namespace lamina::onnx {

bool squared(NodeContext&);                                                                     ///< Mul of a value by itself
bool padded_squares(NodeContext&, const Extents& before, const Extents& after, double number);  ///< Pad
bool mean_of_squares(NodeContext&);                                                             ///< AveragePool
bool squares_and_number(NodeContext&, std::size_t at);  ///< Mul, Add or Pow with a constant, which is operand `at`
bool divided_by_squares(NodeContext&);                  ///< Div of the value by what came of its squares

}  // namespace lamina::onnx
