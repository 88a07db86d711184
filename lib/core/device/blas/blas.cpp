// Row-major products by a column-major library. A row-major c is a column-major transpose of c, and the transpose of
// op(a) op(b) is the product of the transposes in reverse order.

#include "blas.h"

#include "lamina/error.h"

namespace lamina {

std::string status_text(const BlasTable& table, int status) {
  const char* const name = table.cublasGetStatusName == nullptr ? nullptr : table.cublasGetStatusName(status);
  const char* const text = table.cublasGetStatusString == nullptr ? nullptr : table.cublasGetStatusString(status);
  const std::string number = std::to_string(status);
  return (name == nullptr ? "status " + number : std::string(name) + " (" + number + ")") +
         (text == nullptr ? "" : std::string(": ") + text);
}

Blas::Blas(const BlasTable& table, void* stream) : table_(&table) {
  check(table.cublasCreate_v2(&handle_), "cublasCreate_v2");
  try {
    check(table.cublasSetStream_v2(handle_, stream), "cublasSetStream_v2");
    allow_tf32(false);
  } catch (...) {
    (void)table.cublasDestroy_v2(handle_);
    throw;
  }
}

Blas::~Blas() { (void)table_->cublasDestroy_v2(handle_); }

void Blas::check(int status, const char* call) const {
  if (status == cublas_number::success) return;
  const std::string message = std::string(call) + ": " + status_text(*table_, status);
  if (status == cublas_number::alloc_failed) throw OutOfMemory(message);
  throw DeviceError(message);
}

void Blas::use_workspace(void* workspace, std::size_t bytes) {
  check(table_->cublasSetWorkspace_v2(handle_, workspace, bytes), "cublasSetWorkspace_v2");
}

void Blas::allow_tf32(bool allowed) {
  check(table_->cublasSetMathMode(handle_, allowed ? cublas_number::tf32_math : cublas_number::default_math),
        "cublasSetMathMode");
}

namespace {

int operation(bool transpose) { return transpose ? cublas_number::op_t : cublas_number::op_n; }

int data_type(DType dtype) {
  switch (dtype) {
    case DType::f16: return cublas_number::real_16f;
    case DType::bf16: return cublas_number::real_16bf;
    case DType::f32: return cublas_number::real_32f;
    default: throw UsageError("no product of halves has " + std::string(to_string(dtype)));
  }
}

template <class T, class One, class Batched>
int call(BlasTable::Handle handle, const Gemm<T>& g, One one, Batched batched) {
  const int first = operation(g.transpose_b), second = operation(g.transpose_a);
  if (g.batch == 1)
    return one(handle, first, second, g.n, g.m, g.k, &g.alpha, g.b, g.ldb, g.a, g.lda, &g.beta, g.c, g.ldc);
  return batched(handle, first, second, g.n, g.m, g.k, &g.alpha, g.b, g.ldb, g.stride_b, g.a, g.lda, g.stride_a,
                 &g.beta, g.c, g.ldc, g.stride_c, g.batch);
}

}  // namespace

void Blas::gemm(const Gemm<float>& g) {
  check(call(handle_, g, table_->cublasSgemm_v2, table_->cublasSgemmStridedBatched),
        g.batch == 1 ? "cublasSgemm_v2" : "cublasSgemmStridedBatched");
}

void Blas::gemm(const Gemm<double>& g) {
  check(call(handle_, g, table_->cublasDgemm_v2, table_->cublasDgemmStridedBatched),
        g.batch == 1 ? "cublasDgemm_v2" : "cublasDgemmStridedBatched");
}

void Blas::gemm(const HalfGemm& g) {
  const int factors = data_type(g.factors);
  check(table_->cublasSetMathMode(handle_, cublas_number::f32_sums_math), "cublasSetMathMode");
  check(table_->cublasGemmEx(handle_, operation(g.transpose_b), operation(g.transpose_a), g.n, g.m, g.k, &g.alpha, g.b,
                             factors, g.ldb, g.a, factors, g.lda, &g.beta, g.c, data_type(g.result), g.ldc,
                             cublas_number::compute_32f, cublas_number::default_algorithm),
        "cublasGemmEx");
}

}  // namespace lamina
