#pragma once
// The interface of the algorithms of a convolution.

#include <cstddef>
#include <string>
#include <utility>

#include "lib/backends/common/conv_unit.h"
#include "lib/backends/eigen/gemm/columns.h"
#include "lib/backends/eigen/micro_kernels/micro_kernels.h"
#include "lib/backends/eigen/runtime/common.h"

namespace lamina::eigen {

/// dy as a gradient reads it: through the mask of a fused ReLU.
template <class T>
Source<T> gradient_source(const ConvUnit& c, const Args& args) {
  if (!c.relu) return {args.dy.as<T>(), args.dy.pitch};
  return {args.dy.as<T>(), args.dy.pitch, args.y.as<T>(), args.y.pitch};
}

/// The gradient of the bias by its definition, where it is wanted.
template <class T>
void bias_gradient(const ConvUnit&, const Args&, ThreadPool&);

/// One pass of a convolution by one algorithm.
Lowered::Step direct_step(const ConvUnit&, Pass, const Choice&, const Context&);
Lowered::Step im2col_gemm_step(const ConvUnit&, Pass, const Choice&, const Context&);
/// The product of im2col_gemm in f32 whose tiles multiply pairs of bf16.
Lowered::Step im2col_gemm_on_pairs_step(const ConvUnit&, Pass, const Context&);

/// Roundings of a finished sum: a folded batch norm's scale (an addition, a root, a division) and its product, the
/// bias, an old content.
int last_roundings(const ConvUnit&, Pass);

/// The bound of |computed - exact| / (sum of |terms|) if no term is rounded more often than that on its way into the
/// result: n u / (1 - n u), u the unit roundoff. A worst case, not an expectation; no_bound from n u = 1.
double error_of_roundings(double roundings, DType);

/// The bounds of a convolution's passes. im2col_gemm sums in the element type, block by block, `direct` in double.
double im2col_gemm_error(const ConvUnit&, Pass, const Context&);
double im2col_gemm_on_pairs_error(const ConvUnit&, Pass, const Context&);
double direct_error(const ConvUnit&, Pass, const Context&);

}  // namespace lamina::eigen
