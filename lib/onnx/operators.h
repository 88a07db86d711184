#pragma once
// The operators. The function of an operator makes nodes of the graph from a node of the file. Each source file has a
// group of operators, with a table at its end.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "node_context.h"

namespace lamina::onnx {

using Operators = std::vector<OperatorRow>;

/// Operators whose result is a function of each element of the first operand.
constexpr std::string_view of_elements =
    "Abs Celu Clip Elu Exp Gelu HardSigmoid HardSwish LeakyRelu Log Mish PRelu Relu Selu Sigmoid Softplus Sqrt Tanh";

/// ONNX's names of the enumerators, in their order. silu, x times a Sigmoid of x, has the name of the Mul. The two Gelu
/// differ in an attribute.
constexpr const char* function_names[] = {"Sigmoid",   "Tanh", "Clip", "HardSigmoid", "HardSwish", "Mul",
                                          "LeakyRelu", "Elu",  "Celu", "Gelu",        "Gelu",      "Softplus",
                                          "Mish",      "Exp",  "Log",  "Sqrt",        "Abs",       "Pow"};
constexpr const char* binary_function_names[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
constexpr const char* reduction_names[] = {"ReduceMean", "ReduceSum", "ReduceMax"};
constexpr const char* pad_modes[] = {"constant", "edge", "reflect", "wrap"};

/// The first enumerator with the name. Nothing if there is none.
template <class Enumeration>
std::optional<Enumeration> enumerator_of(std::string_view name, std::span<const char* const> names) {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<Enumeration>(found - names.begin()));
}

// The table of each file.
Operators arithmetic_operators();
Operators channel_operators();
Operators conv_operators();
Operators elementwise_operators();
Operators linear_operators();
Operators lrn_operators();
Operators normalisation_operators();
Operators pool_operators();
Operators resize_operators();
Operators sequence_operators();
Operators shape_operators();

// lrn.cpp: the parts of an LRN as PyTorch's exporters write them. If the node is such a part, the function imports it
// and returns true.
bool squared(NodeContext&);             ///< Mul of a value by itself
bool mean_of_squares(NodeContext&);     ///< AveragePool
bool divided_by_squares(NodeContext&);  ///< Div of the value by the result of its squares
bool padded_squares(NodeContext&, const Extents& before, const Extents& after, double number);  ///< Pad
bool squares_and_number(NodeContext&, std::size_t at);  ///< Mul, Add or Pow with a constant, which is operand `at`
/// arithmetic.cpp: applies the operator's function to the first two operands, then to the result and the third, and so
/// on. All operands are computed values.
void join_all(NodeContext&);
// elementwise.cpp: if the node is the first of a GELU that is several nodes, with this input as x, imports the GELU and
// returns true. Otherwise does nothing and returns false.
bool takes_gelu(NodeContext&, std::size_t input);
// channels.cpp
/// Elements of an axis of a value that is not pending. Refusal for an axis of images.
DynamicValue part_of(NodeContext&, const DynamicValue&, std::size_t along, const Range&, const std::string& name);
void import_gather_part(NodeContext&);  ///< Gather from a computed value
// sequence.cpp: Gather or Slice of the last step of an LSTM or GRU. Does nothing and returns false for other nodes.
bool takes_step(NodeContext&, std::size_t along, std::int64_t step, bool keeps_axis);

/// Throws a Refusal because of the order of a value's axes in memory: `why`, and what would be needed.
[[noreturn]] void refuse_order(const std::string& why);
/// As refuse_order(), for an operator's input. The reason begins with the input's shape in the graph.
[[noreturn]] void refuse_input(const DynamicValue&, const std::string& why = "in another order");

/// The value with the file's axes at the graph's axes that the labels name, if need be by a Reorder of this name.
/// Refusal if the images are not the axis n.
DynamicValue in_order(NodeContext&, const DynamicValue&, const AxisLabels&, const std::string& name);
/// The value whose axes in the file are the graph's n, c, h, w (or n, c, h with w 1), if need be by a Reorder.
Value as_image(NodeContext&, const DynamicValue&);
/// The value with all elements of an image as channels, if need be by a Reorder of this name.
DynamicValue as_channels(NodeContext&, const DynamicValue&, const std::string& name);
/// Labels of a value whose last axis is the channels.
AxisLabels channels_last(std::size_t rank);

/// A value, and the axes of the graph that hold certain axes of the file.
struct WholeAxes {
  DynamicValue x;
  bool channels = false, rows = false, columns = false;
};
/// The value with the axes `over` as whole axes of the graph, with `single` as one axis: as it is, or as the rows of a
/// Reorder. Refusal if `over` has an axis of images.
WholeAxes whole_axes(NodeContext&, const DynamicValue&, const std::vector<char>& over, bool single);

/// A function of two computed values. Either may have an extent of 1 where the other has more.
DynamicValue joined(NodeContext&, BinaryFunction, DynamicValue a, DynamicValue b, const std::string& name);
/// Reduces the axes `over`: by a pool if they are pixels and a pool can do it.
DynamicValue reduce(NodeContext&, const WholeAxes&, const std::vector<char>& over, ReduceBy, const std::string& name,
                    bool keeps_axes);

/// The numbers of a constant. FileError unless there are `count`, one for each channel or group of channels.
std::vector<double> numbers_of(const NodeContext&, std::size_t input, const std::string& what, std::int64_t count);

/// Drops a bias that is 0 and does not train.
void drop_zeros(const NodeContext&, std::vector<double>& bias, std::size_t input);

/// The view of a value of this shape with another number of channels, which are the axis `along`. Refusal if the
/// channels are joined with other axes.
View with_channels(const View&, std::size_t along, const Shape&, std::int64_t channels);

/// A number of the file as an int; FileError that names it if it is out of range.
int narrow(const NodeContext&, std::int64_t number, std::int64_t least, std::string_view what);

/// The nearest number that a program would write, such as 0.1: exporters may store it as f32 in a model of any type.
double text_number(double);

/// The only number of a constant, as text_number().
double limit_of(const NodeContext&, std::size_t input, const std::string& what);

}  // namespace lamina::onnx
