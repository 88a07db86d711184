#pragma once
// The algorithm bf16_gemm of convolutions and fully connected ops: products of pairs of bf16.

#include <string>

#include "conv.h"

namespace lamina::eigen {

constexpr const char* bf16_gemm_name = "bf16_gemm";

/// A fully connected op as the convolution by 1x1 of images of one pixel.
ConvUnit as_1x1(ConvUnit);

/// Why the unit has no products of pairs, or empty.
std::string bf16_gemm_refusal(const ConvUnit&, const Context&);

/// Whether the rule prefers products of pairs to products of f32. It does not where there is nothing to pair.
bool bf16_gemm_pays(const ConvUnit&, Pass, const Context&);

/// A pass, and its error bound. `product` makes the step of a unit of f32 by the kernels InstructionSet::f32_pairs, and
/// `product_error` gives its bound. A fully connected op is given as_1x1().
Lowered::Step bf16_gemm_step(const ConvUnit&, Pass, const Context&,
                             Lowered::Step (*product)(const ConvUnit&, Pass, const Context&));
double bf16_gemm_error(const ConvUnit&, Pass, const Context&,
                       double (*product_error)(const ConvUnit&, Pass, const Context&));

}  // namespace lamina::eigen
