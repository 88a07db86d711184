#pragma once
// What a convolution's forward pass reads and does besides its sums, the same for every algorithm. A batch norm that
// follows in inference is folded: forward then reads a filter and a bias made by prepare.

#include "kernels/conv/conv_fold.h"
#include "kernels/conv/conv_geometry.h"
#include "lib/backends/common/algorithms.h"
#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// What a forward pass reads, and what it does with a finished sum.
template <class T>
struct ForwardInputs {
  const T* w;  ///< the filter or, if prepare transforms filters, the transformed one
  ConvEnd<T> end;
};

/// The inputs of a pass. If an Add follows, its other operand is then in y, and the pass adds to it.
template <class T>
ForwardInputs<T> begin_forward(Stream, const ConvUnit&, const Args&);

/// Prepared memory holds the folded bias, if any, in so many bytes, and then filters.
template <class T>
std::size_t folded_bias_bytes(const ConvUnit&);
template <class T>
T* prepared_filters(const ConvUnit&, const Args&);

/// The parameters of a folded unit for the kernels that fold.
template <class T>
ConvFold<T> fold_of(const ConvUnit&, const Args&);

/// Filter and bias of a unit with a batch norm folded, for algorithms that read them directly.
Prepared folded(const ConvUnit&, Machine&);

}  // namespace lamina::LAMINA_CUDA_SPACE
