#pragma once
// A convolution as its algorithms see it, and the interface of each of them.

#include <cstddef>
#include <string>
#include <utility>

#include "lib/backends/eigen/gemm/columns.h"
#include "lib/backends/eigen/micro_kernels/micro_kernels.h"
#include "lib/backends/eigen/runtime/common.h"

namespace lamina::eigen {

/// A convolution with everything known but addresses and pitches.
struct ConvProblem {
  Conv op;
  Shape x, y;
  bool relu;  ///< negative sums become 0, and dy counts only where y is above 0
  bool add_dx, add_dw;
  bool add_y = false;      ///< inference: x[1] is added before the ReLU
  bool folded = false;     ///< inference: a batch norm follows; op.bias is true then
  bool conv_bias = false;  ///< with folded: whether the convolution itself has a bias
  double epsilon = 0;      ///< with folded: the batch norm's

  int group_channels() const { return x.c / op.groups; }  ///< of x
  int group_filters() const { return y.c / op.groups; }
  std::int64_t weights() const { return std::int64_t{y.c} * group_channels() * op.kernel.h * op.kernel.w; }
};

/// dy as a gradient reads it: through the mask of a fused ReLU.
template <class T>
Source<T> gradient_source(const ConvProblem& c, const Args& args) {
  if (!c.relu) return {args.dy.as<T>(), args.dy.pitch};
  return {args.dy.as<T>(), args.dy.pitch, args.y.as<T>(), args.y.pitch};
}

/// The gradient of the bias by its definition, where it is wanted.
template <class T>
void bias_gradient(const ConvProblem&, const Args&, Pool&);

/// One pass of a convolution by one algorithm.
Lowered::Step direct_step(const ConvProblem&, DType, Pass, const Context&);
Lowered::Step im2col_gemm_step(const ConvProblem&, DType, Pass, const Context&);

/// Roundings of a finished sum: a folded batch norm's scale (an addition, a root, a division) and its product, the
/// bias, an old content.
int last_roundings(const ConvProblem&, Pass);

/// The bound of |computed - exact| / (sum of |terms|) if no term is rounded more often than that on its way into the
/// result: n u / (1 - n u), u the unit roundoff. A worst case, not an expectation; no_bound from n u = 1.
double error_of_roundings(double roundings, DType);

/// The same of a convolution's passes. im2col_gemm sums in the element type, block by block, `direct` in double.
double im2col_gemm_error(const ConvProblem&, DType, Pass, const Context&);
double direct_error(const ConvProblem&, DType, Pass);

}  // namespace lamina::eigen
