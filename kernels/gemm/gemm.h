#pragma once
// Our own matrix product, for use without cuBLAS.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// c[m,n] = sum over k of a[m,k] b[k,n], or c += with `adds`. Element (i, j) of a matrix is at i * the first stride + j
/// * the second. One stride of a is 1, and one stride of b is 1; c may have any strides.
template <class T>
struct GemmProblem {
  int m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::int64_t a_m = 0, a_k = 0;
  const T* b = nullptr;
  std::int64_t b_k = 0, b_n = 0;
  T* c = nullptr;
  std::int64_t c_m = 0, c_n = 0;
  bool adds = false;
};

/// Bytes of `partial` that gemm needs for a product of these sizes: sums over ranges of k, if there are too few
/// results to keep a device busy. Depends on the sizes alone.
template <class T>
std::size_t gemm_partial_bytes(int m, int n, int k);

template <class T>
void gemm(Stream, const GemmProblem<T>&, T* partial);

}  // namespace lamina::LAMINA_CUDA_SPACE
