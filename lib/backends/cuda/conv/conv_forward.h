#pragma once
// What a convolution's forward pass reads and does besides its sums, the same for every algorithm. A batch norm that
// follows in inference is folded: forward then reads a filter and a bias made by prepare.

#include "kernels/conv/conv_fold.h"
#include "kernels/conv/conv_geometry.h"
#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The forward pass of one unit, before memory is allocated.
struct ConvForward {
  int filters;
  std::int64_t weights;  ///< of a filter
  bool own_bias, folded, adds, relu;
  double epsilon;  ///< with folded: the batch norm's
};
ConvForward conv_forward(const Conv&, const Spec&);

/// Roundings of a result besides those of its sum: a folded factor (an addition, a root, a division) and its product,
/// and that of the Add.
int fold_roundings(const ConvForward&);

/// What a forward pass reads, and what it does with a finished sum.
template <class T>
struct ForwardInputs {
  const T* w;  ///< the filter or, if prepare transforms filters, the transformed one
  ConvEnd<T> end;
};

/// The inputs of a pass. If an Add follows, its other operand is then in y, and the pass adds to it.
template <class T>
ForwardInputs<T> begin_forward(Stream, const ConvForward&, const Args&);

/// Prepared memory holds the folded bias, if any, in so many bytes, and then filters.
template <class T>
std::size_t folded_bias_bytes(const ConvForward&);
template <class T>
T* prepared_filters(const ConvForward&, const Args&);

/// The parameters of a folded unit for the kernels that fold.
template <class T>
ConvFold<T> fold_of(const ConvForward&, const Args&);

/// Prepares filter and bias of a folded unit, for algorithms that read them directly.
Lowered::Step fold_step(const ConvForward&, DType, const std::string& algorithm, Machine&);
std::size_t fold_bytes(const ConvForward&, DType);

}  // namespace lamina::LAMINA_CUDA_SPACE
