#pragma once
// Inputs and epilogue of a convolution's forward pass, the same for every algorithm. A batch norm that follows in
// inference is folded: forward then reads a filter and a bias made by prepare. ReLU is a part of the epilogue.
// Another function is a kernel of its own, in place behind the pass: see apply().

#include "kernels/conv/conv_fold.h"
#include "kernels/conv/conv_geometry.h"
#include "lib/backends/common/algorithms.h"
#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The filter that a forward pass reads, and its epilogue.
template <class T>
struct ForwardInputs {
  const T* w;  ///< the filter or, if prepare transforms filters, the transformed one
  ConvEnd<T> end;
};

/// Makes the inputs of a pass. If an Add follows, first copies its other operand to y; the pass adds to it.
template <class T>
ForwardInputs<T> begin_forward(Stream, const ConvUnit&, const Args&);

/// Layout of prepared memory: the folded bias, if any, in folded_bias_bytes(), and then the filters.
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
