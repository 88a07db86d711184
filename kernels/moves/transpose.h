#pragma once
// Matrices to their transposes: pixels of channels (nhwc) to channels of pixels (nchw), and back.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// `count` matrices, `apart` elements between them; a row's elements lie together, rows are `pitch` elements apart.
template <class T>
struct Matrices {
  T* data;
  int count, rows, columns;
  std::int64_t pitch, apart;
};

/// Column i of `from` becomes row i of `to`. They do not overlap. Their types are one, or float and a half.
template <class From, class To>
void transpose(Stream, Matrices<const From> from, Matrices<To> to);

}  // namespace lamina::LAMINA_CUDA_SPACE
