#pragma once
// A convolution as its algorithms see it, and the interface of each of them.

#include "conv_forward.h"
#include "kernels/conv/conv_geometry.h"
#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {

ConvGeometry geometry_of(const Conv&);

/// dy for backward: masked by y if the unit ends in a ReLU.
template <class T>
Masked<T> masked_dy(const Args& args, bool relu) {
  Masked<T> dy{view<const T>(args.dy), {}};
  if (relu) dy.mask = view<const T>(args.y);
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
void backward_bias(Stream, const Conv&, const Args&, const Masked<T>& dy, bool adds);
std::size_t backward_bias_bytes(const Conv&, const Spec&);

/// One pass by one algorithm, which must support it.
Lowered::Step direct_step(const Conv&, const Spec&, Pass, Machine&);
constexpr const char* im2col_gemm_name = "im2col_gemm";
Lowered::Step im2col_gemm_step(const Conv&, const Spec&, const Choice&, Pass, Machine&);
Lowered::Step implicit_gemm_step(const Conv&, const Spec&, Pass, Machine&);
Lowered::Step gemm_1x1_step(const Conv&, const Spec&, Pass, Machine&);

/// Cycles of forward or the data gradient on a large device in f32, by the model of docs/algorithms/implicit_gemm.md.
std::int64_t implicit_gemm_cycles(const Conv&, const Spec&, Pass);

/// Why the algorithm cannot run this convolution, or empty.
std::string implicit_gemm_refusal(const Conv&, const Spec&);
std::string gemm_1x1_refusal(const Conv&, const Spec&);
std::string im2col_gemm_refusal(const Conv&, const Spec&);

/// Whether gemm_1x1, where it applies, finishes before implicit_gemm by the models of both.
bool gemm_1x1_pays(const Conv&, const Spec&, Pass);

}  // namespace lamina::LAMINA_CUDA_SPACE
