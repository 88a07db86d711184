#pragma once
// The functions of Pointwise: their names, what their gradients read, and their cost.

#include <array>
#include <string_view>

#include "lamina/op.h"

namespace lamina {

/// Operations are for each element. An exponential, a power, a logarithm, a root, a tanh and an erf count as one.
struct FunctionRow {
  std::string_view name;  ///< name of the op
  bool reads_x;           ///< whether the gradient is computed from x, otherwise from y
  double forward;         ///< operations of y
  double backward;        ///< operations of dx
};

/// Rows by function, in the order of the enumeration. A term of a comment is one operation, or the number after it.
/// s: the sigmoid of x; P: the normal distribution at x; t: the tanh in mish, or in gelu_tanh, where u is its argument.
inline constexpr std::array<FunctionRow, 18> function_rows{{
    {"sigmoid", false, 3, 3},       // exponential, add, divide; dy y (1 - y)
    {"tanh", false, 1, 3},          // dy (1 - y y)
    {"clip", false, 2, 2},          // comparisons 2; the same
    {"hard_sigmoid", false, 4, 2},  // a x + b 2, limits 2
    {"hard_swish", true, 5, 5},     // hard sigmoid 4, times x; comparisons 2, x / 3 + 1/2 2, times dy
    {"silu", true, 4, 8},           // s 3, times x; s 3, 1 - s, times x, 1 +, times s, times dy
    {"leaky_relu", false, 2, 2},    // comparison, product
    {"elu", false, 4, 3},           // comparison, exponential, subtract, product; comparison, y + a b, product
    {"celu", false, 5, 4},          // as elu, and a division by a
    {"gelu", true, 5, 11},          // P 4, times x; P 4, its derivative 4, times x, add, times dy
    {"gelu_tanh", true, 9, 18},  // t 6, x (1 + t) / 2 3; t 6, (1 + t) / 2 2, 1 - t t 2, u' 3, products 3, add, times dy
    {"softplus", false, 3, 3},   // exponential, add, logarithm; 1 - exp(-y), times dy
    {"mish", true, 5, 13},       // t 4, times x; t 4, s 3, 1 - t t 2, products 2, add, times dy
    {"exp", false, 1, 1},
    {"log", true, 1, 1},
    {"sqrt", false, 1, 2},
    {"abs", true, 1, 1},
    {"pow", true, 1, 3},  // a x^(a - 1) dy
}};

/// Throws std::out_of_range for an invalid enumerator.
inline const FunctionRow& row_of(Function function) { return function_rows.at(static_cast<std::size_t>(function)); }

}  // namespace lamina
