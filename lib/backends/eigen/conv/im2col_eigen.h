#pragma once
// Convolution as a matrix product by Eigen: the baseline for our own products.

#include "conv.h"

namespace lamina::eigen {

constexpr const char* im2col_eigen_name = "im2col_eigen";

Lowered::Step im2col_eigen_step(const ConvUnit&, Pass, const Choice&, const Context&);

/// As im2col_gemm_error(): every product is summed in the element type, in whatever order Eigen takes.
double im2col_eigen_error(const ConvUnit&, Pass, const Context&);

}  // namespace lamina::eigen
