#pragma once
// The operators, a function for each: from a node of the file to nodes of the graph. Files are groups of operators.

#include <cstdint>
#include <string>

#include "lib/onnx/importer.h"

namespace lamina::onnx {

// conv.cpp
void import_conv(NodeContext&);
// pool.cpp
void import_max_pool(NodeContext&);
void import_average_pool(NodeContext&);
void import_global_average_pool(NodeContext&);
void import_global_max_pool(NodeContext&);
void import_reduce(NodeContext&);  ///< ReduceMean, ReduceMax
// linear.cpp
void import_gemm(NodeContext&);
void import_matmul(NodeContext&);
// normalisation.cpp
void import_batch_norm(NodeContext&);
void import_softmax(NodeContext&);
void import_dropout(NodeContext&);
// lrn.cpp
void import_lrn(NodeContext&);
// The parts of an LRN as PyTorch's exporters write them: each does its node and returns true if the node is such a
// part.
bool squared(NodeContext&);             ///< Mul of a value by itself
bool mean_of_squares(NodeContext&);     ///< AveragePool
bool divided_by_squares(NodeContext&);  ///< Div of the value by what came of its squares
bool padded_squares(NodeContext&, const Extents& before, const Extents& after, double number);  ///< Pad
bool squares_and_number(NodeContext&, std::size_t at);  ///< Mul, Add or Pow with a constant, which is operand `at`
// elementwise.cpp
void import_relu(NodeContext&);
void import_sigmoid(NodeContext&);
void import_hard_sigmoid(NodeContext&);
void import_hard_swish(NodeContext&);
void import_tanh(NodeContext&);
void import_clip(NodeContext&);
void import_limit(NodeContext&);  ///< Max, Min
void import_add(NodeContext&);
void import_sum(NodeContext&);
void import_arithmetic(NodeContext&);  ///< Sub, Mul, Div
void import_pow(NodeContext&);
void import_cast(NodeContext&);  ///< also CastLike
[[noreturn]] void import_random(NodeContext&);
// channels.cpp
void import_concat(NodeContext&);
void import_split(NodeContext&);
void import_slice(NodeContext&);
void import_gather_part(NodeContext&);  ///< Gather from a computed value
// shape.cpp
void import_identity(NodeContext&);
void import_shape(NodeContext&);
void import_size(NodeContext&);
void import_regroup(NodeContext&);  ///< Reshape, Flatten, Squeeze, Unsqueeze
void import_transpose(NodeContext&);
void import_pad(NodeContext&);
void import_if(NodeContext&);
// sequence.cpp
void import_lstm(NodeContext&);
void import_gather(NodeContext&);

/// Why axes are not in the order that an op takes.
constexpr const char* keep_order = "a permute or view before it would have to move numbers";

/// The value if its axes in the file are the graph's n, c, h, w (or n, c, h with w 1); else a Refusal.
Value as_image(const DynamicValue&);

/// A bias of zeros that does not train is none.
void drop_zeros(const NodeContext&, std::vector<double>& bias, std::size_t input);

/// The view of an equal value with other channels; Refusal if its channels are joined with something.
View with_channels(const View&, const Shape& before, const Shape& after);

/// A number of the file as an int; FileError that names it if it is out of range.
int narrow(const NodeContext&, std::int64_t number, std::int64_t least, std::string_view what);

}  // namespace lamina::onnx
