#pragma once
// The interface of the algorithms of a convolution.

#include <string>

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

constexpr const char* im2col_gemm_name = "im2col_gemm";
constexpr const char* im2col_eigen_name = "im2col_eigen";
constexpr const char* bf16_gemm_name = "bf16_gemm";
constexpr const char* depthwise_name = "depthwise";
constexpr const char* winograd_name(int tile) { return tile == 2 ? "winograd_2x2" : "winograd_4x4"; }

/// The step of a pass by one algorithm. Winograd has tiles of 2x2 or 4x4: `tile` is 2 or 4. In inference, its forward
/// pass over few tiles reads filters that winograd_prepare() has transformed. Winograd's values may be in bf16.
Lowered::Step direct_step(const ConvUnit&, Pass, const Choice&, const Context&);
Lowered::Step im2col_gemm_step(const ConvUnit&, Pass, const Choice&, const Context&);
Lowered::Step im2col_eigen_step(const ConvUnit&, Pass, const Choice&, const Context&);
Lowered::Step depthwise_step(const ConvUnit&, Pass, const Choice&, const Context&);
Lowered::Step winograd_step(const ConvUnit&, int tile, Pass, const Context&);
Prepared winograd_prepare(const ConvUnit&, int tile, const Context&);
/// The step of im2col_gemm in f32, with tiles that multiply pairs of bf16.
Lowered::Step im2col_gemm_on_pairs_step(const ConvUnit&, Pass, const Context&);

/// The step of a pass by bf16_gemm: a product of pairs of bf16. `product` makes the step of an f32 unit with the
/// kernels InstructionSet::f32_pairs. In bf16_gemm_error(), `product_error` gives the bound of that step. A fully
/// connected op is given in the form as_1x1(): a 1x1 convolution of images of one pixel.
Lowered::Step bf16_gemm_step(const ConvUnit&, Pass, const Context&,
                             Lowered::Step (*product)(const ConvUnit&, Pass, const Context&));
/// Prepares scale and bias of a folded batch norm, then the weights in pairs, for forward passes in inference.
Prepared bf16_gemm_prepare(const ConvUnit&, const Context&);
double bf16_gemm_error(const ConvUnit&, Pass, const Context&,
                       double (*product_error)(const ConvUnit&, Pass, const Context&));
ConvUnit as_1x1(ConvUnit);

/// The reason why the algorithm cannot run the unit. Empty: it can.
std::string bf16_gemm_refusal(const ConvUnit&, Pass, const Context&);
std::string depthwise_refusal(const ConvUnit&, Pass, const Context&);

/// Whether the rule prefers products of pairs to products of f32: false where there is nothing to pair.
bool bf16_gemm_pays(const ConvUnit&, Pass, const Context&);
/// Whether `depthwise` is faster than im2col_gemm, as measured on layers of ResNeXt-50 and RegNetX-400MF, with AVX-512
/// for FilterSums and with AVX2 for PlaneSums.
bool depthwise_pays(const ConvUnit&, Pass, const Context&);
/// Whether Winograd, with the largest tile that takes the unit, is likely the fastest algorithm (docs/ops/conv.md).
bool winograd_pays(const ConvUnit&);

/// Number of roundings after a sum: a folded batch norm's scale has three (an addition, a root, a division); the
/// product with it, the bias, an addend and an old content have one each.
int last_roundings(const ConvUnit&, Pass);

/// The bound of |computed - exact| / (sum of |terms|) if no term is rounded more than n = `roundings` times on its way
/// into the result: n u / (1 - n u), with the unit roundoff u. A worst case, not an expectation; no_bound from n u = 1.
double error_of_roundings(double roundings, DType);

/// The bounds of a convolution's passes. im2col_gemm sums in the element type, block by block, im2col_eigen in whatever
/// order Eigen takes, `direct` in double.
double im2col_gemm_error(const ConvUnit&, Pass, const Context&);
double im2col_eigen_error(const ConvUnit&, Pass, const Context&);
double depthwise_error(const ConvUnit&, Pass, const Context&);
double im2col_gemm_on_pairs_error(const ConvUnit&, Pass, const Context&);
double direct_error(const ConvUnit&, Pass, const Context&);

}  // namespace lamina::eigen
