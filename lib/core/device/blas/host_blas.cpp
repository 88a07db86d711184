// cuBLAS's products, computed by plain loops. Matrices are column-major: element (i, j) of a is a[i + j * lda].

#include "blas.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "lib/core/numbers/float16.h"

namespace lamina {
namespace {

using namespace cublas_number;  // NOLINT(google-build-using-namespace): numbers alone

/// The target of a handle, which must not be null.
struct HostHandle {};

bool is_operation(int op) { return op == op_n || op == op_t; }

constexpr int rows_at_once = 256;

/// Computes rows [first, first + rows) of column j of c, which start at `to`.
template <class T>
void column_part(int transa, int transb, int first, int rows, int j, int k, T alpha, const T* a, int lda, const T* b,
                 int ldb, T beta, T* to) {
  std::array<T, rows_at_once> sums{};
  for (int l = 0; l < k; ++l) {
    const T factor = transb == op_n ? b[l + std::ptrdiff_t{j} * ldb] : b[j + std::ptrdiff_t{l} * ldb];
    const T* const from = transa == op_n ? a + first + std::ptrdiff_t{l} * lda : a + l + std::ptrdiff_t{first} * lda;
    const std::ptrdiff_t next = transa == op_n ? 1 : lda;
    for (int i = 0; i < rows; ++i) sums[static_cast<std::size_t>(i)] += from[i * next] * factor;
  }
  for (int i = 0; i < rows; ++i) {
    const T product = alpha * sums[static_cast<std::size_t>(i)];
    to[i] = beta == T(0) ? product : product + beta * to[i];
  }
}

template <class T>
int gemm(BlasTable::Handle handle, int transa, int transb, int m, int n, int k, const T* alpha, const T* a, int lda,
         long long stride_a, const T* b, int ldb, long long stride_b, const T* beta, T* c, int ldc, long long stride_c,
         int batch) {
  if (handle == nullptr) return not_initialized;
  if (m < 0 || n < 0 || k < 0 || batch < 0 || !is_operation(transa) || !is_operation(transb) || alpha == nullptr ||
      beta == nullptr || lda < std::max(1, transa == op_n ? m : k) || ldb < std::max(1, transb == op_n ? k : n) ||
      ldc < std::max(1, m))
    return invalid_value;
  for (int image = 0; image < batch; ++image, a += stride_a, b += stride_b, c += stride_c)
    for (int j = 0; j < n; ++j)
      for (int first = 0; first < m; first += rows_at_once)
        column_part(transa, transb, first, std::min(rows_at_once, m - first), j, k, *alpha, a, lda, b, ldb, *beta,
                    c + first + std::ptrdiff_t{j} * ldc);
  return success;
}

template <class T>
int one_gemm(BlasTable::Handle handle, int transa, int transb, int m, int n, int k, const T* alpha, const T* a, int lda,
             const T* b, int ldb, const T* beta, T* c, int ldc) {
  return gemm<T>(handle, transa, transb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);
}

/// The element type of cuBLAS's number; u64 for types that are missing here.
DType element_type(int number) {
  return number == real_32f    ? DType::f32
         : number == real_16f  ? DType::f16
         : number == real_16bf ? DType::bf16
                               : DType::u64;
}

/// A matrix of halves, converted to f32.
std::vector<float> widened(const void* halves, DType dtype, int rows, int columns, int leading) {
  std::vector<float> wide(static_cast<std::size_t>(std::ptrdiff_t{leading} * std::max(columns - 1, 0) + rows));
  for (std::ptrdiff_t j = 0; j < columns; ++j)
    for (std::ptrdiff_t i = j * leading; i < j * leading + rows; ++i)
      wide[static_cast<std::size_t>(i)] =
          static_cast<float>(widen(dtype, static_cast<const std::uint16_t*>(halves)[i]));
  return wide;
}

/// A product with factors of 16 bits and sums in f32. Takes the combinations of types that the manual lists (cuBLAS
/// library, cublasGemmEx).
int gemm_ex(BlasTable::Handle handle, int transa, int transb, int m, int n, int k, const void* alpha, const void* a,
            int a_type, int lda, const void* b, int b_type, int ldb, const void* beta, void* c, int c_type, int ldc,
            int compute_type, int) {
  const DType factors = element_type(a_type), result = element_type(c_type);
  if (!is_half(factors) || b_type != a_type || (result != factors && result != DType::f32) ||
      compute_type != compute_32f)
    return not_supported;
  const bool turned_a = transa == op_t, turned_b = transb == op_t;
  const std::vector<float> wide_a = widened(a, factors, turned_a ? k : m, turned_a ? m : k, lda),
                           wide_b = widened(b, factors, turned_b ? n : k, turned_b ? k : n, ldb);
  const auto product = [&](float* to) {
    return one_gemm<float>(handle, transa, transb, m, n, k, static_cast<const float*>(alpha), wide_a.data(), lda,
                           wide_b.data(), ldb, static_cast<const float*>(beta), to, ldc);
  };
  if (result == DType::f32) return product(static_cast<float*>(c));
  std::vector<float> sums = widened(c, result, m, n, ldc);
  const int status = product(sums.data());
  for (std::ptrdiff_t j = 0; j < n && status == success; ++j)
    for (std::ptrdiff_t i = j * ldc; i < j * ldc + m; ++i)
      static_cast<std::uint16_t*>(c)[i] = narrow(result, sums[static_cast<std::size_t>(i)]);
  return status;
}

int create(BlasTable::Handle* handle) {
  if (handle == nullptr) return invalid_value;
  *handle = new (std::nothrow) HostHandle;
  return *handle == nullptr ? alloc_failed : success;
}

int destroy(BlasTable::Handle handle) {
  delete static_cast<HostHandle*>(handle);
  return handle == nullptr ? not_initialized : success;
}

int set_stream(BlasTable::Handle handle, void*) { return handle == nullptr ? not_initialized : success; }

int set_workspace(BlasTable::Handle handle, void* workspace, std::size_t bytes) {
  if (handle == nullptr) return not_initialized;
  return workspace == nullptr && bytes > 0 ? invalid_value : success;
}

int set_math_mode(BlasTable::Handle handle, int mode) {
  if (handle == nullptr) return not_initialized;
  return mode == f32_sums_math || (mode >= default_math && mode <= tf32_math) ? success : invalid_value;
}

int property(int which, int* value) {
  if (which < 0 || which > 2 || value == nullptr) return invalid_value;
  *value = 0;
  return success;
}

struct Status {
  int number;
  const char *name, *text;
};

const Status& status_of(int number) {
  static constexpr Status known[] = {
      {success, "CUBLAS_STATUS_SUCCESS", "no error"},
      {not_initialized, "CUBLAS_STATUS_NOT_INITIALIZED", "the handle is null"},
      {alloc_failed, "CUBLAS_STATUS_ALLOC_FAILED", "the host has no memory left"},
      {invalid_value, "CUBLAS_STATUS_INVALID_VALUE",
       "an extent, a leading dimension, an operation or a pointer is wrong"},
      {not_supported, "CUBLAS_STATUS_NOT_SUPPORTED", "the combination of types is not listed"}};
  static constexpr Status unknown = {-1, "unknown status", "no status of the host's products"};
  const auto* const found = std::ranges::find(known, number, &Status::number);
  return found == std::end(known) ? unknown : *found;
}

const char* status_name(int status) { return status_of(status).name; }
const char* status_string(int status) { return status_of(status).text; }

}  // namespace

const BlasTable& host_blas() {
  static const BlasTable table = {create,          destroy,          set_stream,   set_workspace, set_math_mode,
                                  one_gemm<float>, one_gemm<double>, gemm<float>,  gemm<double>,  gemm_ex,
                                  property,        status_name,      status_string};
  return table;
}

}  // namespace lamina
