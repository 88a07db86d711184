#pragma once
// The interface of the algorithms of a convolution.

#include "conv_forward.h"
#include "kernels/conv/conv_geometry.h"
#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {

ConvGeometry geometry_of(const Conv&);

/// dy for backward: masked by y if the unit ends in a ReLU.
template <class T>
Masked<T> masked_dy(const ConvUnit& c, const Args& args) {
  Masked<T> dy{view<const T>(args.dy), {}};
  if (c.relu) dy.mask = view<const T>(args.y);
  return dy;
}

/// A tensor of this shape without data, for computing sizes.
template <class T>
View<T> empty_view(const Shape& shape) {
  return {nullptr, shape.n, shape.c, shape.h, shape.w, shape.image()};
}

/// Writes the bias gradient, if the op has a bias and the gradient is wanted. Takes backward_bias_bytes of
/// args.workspace, which may be reused afterwards.
template <class T>
void backward_bias(Stream, const ConvUnit&, const Args&, const Masked<T>& dy);
std::size_t backward_bias_bytes(const ConvUnit&);

/// One pass by im2col_gemm. The steps of the algorithms with kernels of their own are made by conv_step.h.
Lowered::Step im2col_gemm_step(const ConvUnit&, Pass, const Choice&, Machine&);

/// Cycles of forward or the data gradient on a large device in f32, by the model of docs/algorithms/implicit_gemm.md.
std::int64_t implicit_gemm_cycles(const ConvUnit&, Pass);

/// Why the algorithm cannot run this convolution, or empty.
std::string implicit_gemm_refusal(const ConvUnit&, Pass, Machine&);
std::string gemm_1x1_refusal(const ConvUnit&, Pass, Machine&);
std::string im2col_gemm_refusal(const ConvUnit&, Pass, Machine&);

/// Whether the models predict that gemm_1x1, where it applies, is faster than implicit_gemm.
bool gemm_1x1_pays(const ConvUnit&, Pass);

}  // namespace lamina::LAMINA_CUDA_SPACE
