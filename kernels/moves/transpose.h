#pragma once
// Transposes of matrices: pixels of channels (nhwc) to channels of pixels (nchw), and back.

#include "kernels/common/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// `count` matrices that are `apart` elements apart. The elements of a row are contiguous; rows are `pitch` elements
/// apart.
template <class T>
struct Matrices {
  T* data;
  int count, rows, columns;
  std::int64_t pitch, apart;
};

/// Column i of `from` becomes row i of `to`. The two do not overlap. They have one type, or float and a half.
template <class From, class To>
void transpose(Stream, Matrices<const From> from, Matrices<To> to);

}  // namespace lamina::LAMINA_CUDA_SPACE
