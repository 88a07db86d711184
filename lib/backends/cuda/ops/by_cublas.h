#pragma once
// Products of the form of kernels/gemm/gemm.h, by cuBLAS or our kernel.

#include <utility>

#include "kernels/gemm/gemm.h"
#include "lib/backends/cuda/common.h"
#include "lib/core/device/blas/blas.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The same product in transposed form: c^T = b^T a^T.
template <class T>
GemmProblem<T> transposed(GemmProblem<T> p) {
  std::swap(p.m, p.n);
  std::swap(p.c_m, p.c_n);
  std::swap(p.a, p.b);
  std::swap(p.a_m, p.b_n);
  std::swap(p.a_k, p.b_k);
  return p;
}

/// Computes the product by cuBLAS. Rows or columns of c are dense. `workspace` has machine.blas_workspace_bytes().
template <class T>
void by_cublas(Machine& machine, GemmProblem<T> p, void* workspace) {
  if (p.c_n != 1 || p.c_m < p.n) p = transposed(p);
  Gemm<T> gemm{};
  gemm.transpose_a = p.a_k != 1 || p.a_m < p.k;
  gemm.transpose_b = p.b_n != 1 || p.b_k < p.n;
  gemm.m = p.m;
  gemm.n = p.n;
  gemm.k = p.k;
  gemm.a = p.a;
  gemm.lda = static_cast<int>(gemm.transpose_a ? p.a_k : p.a_m);
  gemm.b = p.b;
  gemm.ldb = static_cast<int>(gemm.transpose_b ? p.b_n : p.b_k);
  gemm.beta = p.adds ? T(1) : T(0);
  gemm.c = p.c;
  gemm.ldc = static_cast<int>(p.c_m);
  machine.blas(workspace).gemm(gemm);
}

/// Computes the product by cuBLAS or, if `blas` is null, by our kernel. product_bytes() is the size of its workspace.
template <class T>
void multiply(Machine* blas, Stream stream, const GemmProblem<T>& p, void* workspace) {
  if (blas != nullptr) return by_cublas(*blas, p, workspace);
  gemm(stream, p, static_cast<T*>(workspace));
}
template <class T>
std::size_t product_bytes(const Machine* blas, const GemmProblem<T>& p) {
  return blas != nullptr ? Machine::blas_workspace_bytes() : gemm_partial_bytes<T>(p.m, p.n, p.k);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
