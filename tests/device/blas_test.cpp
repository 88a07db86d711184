// Matrix products by cuBLAS's interface: the host's products compared with plain sums, and the arguments of library
// calls.

#include "lib/core/device/blas/blas.h"

#include "lib/core/numbers/float16.h"
#include "tests/support/catch.h"
#include "tests/support/numbers/values.h"

namespace lamina {
namespace {

using test::integers;  // all sums of these numbers are exact in both types

std::size_t at(int row, int column, int leading) { return static_cast<std::size_t>(row) * leading + column; }

/// Checks a product by its definition. `before` is c before the product.
template <class T>
void expect_product(const Gemm<T>& g, const std::vector<T>& before) {
  for (int image = 0; image < g.batch; ++image) {
    const T* const a = g.a + image * g.stride_a;
    const T* const b = g.b + image * g.stride_b;
    const std::size_t shift = static_cast<std::size_t>(image * g.stride_c);
    for (int i = 0; i < g.m; ++i)
      for (int j = 0; j < g.n; ++j) {
        T sum = 0;
        for (int l = 0; l < g.k; ++l)
          sum += (g.transpose_a ? a[at(l, i, g.lda)] : a[at(i, l, g.lda)]) *
                 (g.transpose_b ? b[at(j, l, g.ldb)] : b[at(l, j, g.ldb)]);
        const T old = before[shift + at(i, j, g.ldc)];
        const T expected = g.beta == 0 ? g.alpha * sum : g.alpha * sum + g.beta * old;
        REQUIRE(g.c[shift + at(i, j, g.ldc)] == expected);
      }
  }
}

TEMPLATE_TEST_CASE("the host's products are exact on integers, for both transposes, gaps, batches and betas", "", float,
                   double) {
  using T = TestType;
  struct Extents {
    int m, n, k, gap, batch;
  };
  Blas blas(host_blas(), nullptr);
  for (const Extents e :
       {Extents{1, 1, 1, 0, 1}, {3, 5, 7, 2, 1}, {300, 2, 9, 0, 1}, {4, 270, 3, 1, 3}, {17, 13, 1, 0, 2}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const T beta : {T(0), T(1), T(-2)}) {
          Gemm<T> g{.transpose_a = transpose_a, .transpose_b = transpose_b, .m = e.m, .n = e.n, .k = e.k};
          g.alpha = T(3);
          g.beta = beta;
          g.batch = e.batch;
          g.lda = (transpose_a ? e.m : e.k) + e.gap;
          g.ldb = (transpose_b ? e.k : e.n) + e.gap;
          g.ldc = e.n + e.gap;
          g.stride_a = std::int64_t{g.lda} * (transpose_a ? e.k : e.m) + 5;
          g.stride_b = std::int64_t{g.ldb} * (transpose_b ? e.n : e.k) + 1;
          g.stride_c = std::int64_t{g.ldc} * e.m + 3;
          const auto a = integers<T>(g.stride_a * e.batch, 1);
          const auto b = integers<T>(g.stride_b * e.batch, 2);
          const T start = beta == 0 ? std::numeric_limits<T>::quiet_NaN() : T(0);  // with beta 0, c is not read
          std::vector<T> c = integers<T>(g.stride_c * e.batch, 3);
          for (T& value : c) value += start;
          const std::vector<T> before = c;
          g.a = a.data();
          g.b = b.data();
          g.c = c.data();
          CAPTURE(e.m, e.n, e.k, e.gap, e.batch, transpose_a, transpose_b, beta);
          blas.gemm(g);
          expect_product(g, before);
          // The elements between rows, and between the images of a batch, are unchanged.
          for (std::size_t i = 0; i < c.size(); ++i) {
            const auto within = static_cast<std::int64_t>(i) % g.stride_c;
            if (within < std::int64_t{g.ldc} * e.m && within % g.ldc < e.n) continue;
            REQUIRE((c[i] == before[i] || (std::isnan(c[i]) && std::isnan(before[i]))));
          }
        }
}

TEST_CASE("half-precision products are exact on integers, for both transposes, gaps and betas, into halves and f32") {
  Blas blas(host_blas(), nullptr);
  constexpr int m = 3, n = 5, k = 7, gap = 2;
  for (const DType factors : {DType::f16, DType::bf16})
    for (const DType result : {factors, DType::f32})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          for (const float beta : {0.0F, 1.0F}) {
            Gemm<float> g{.transpose_a = transpose_a, .transpose_b = transpose_b, .m = m, .n = n, .k = k};
            g.lda = (transpose_a ? m : k) + gap, g.ldb = (transpose_b ? k : n) + gap, g.ldc = n + gap;
            g.beta = beta;
            const auto a = integers<float>(g.lda * (transpose_a ? k : m), 1);
            const auto b = integers<float>(g.ldb * (transpose_b ? n : k), 2);
            auto c = integers<float>(g.ldc * m, 3);
            const auto in_type = [&](const std::vector<float>& from, DType dtype) {
              std::vector<std::uint32_t> to(from.size());
              for (std::size_t i = 0; i < from.size(); ++i)
                if (is_half(dtype))
                  reinterpret_cast<std::uint16_t*>(to.data())[i] = narrow(dtype, from[i]);
                else
                  reinterpret_cast<float*>(to.data())[i] = from[i];
              return to;
            };
            auto half_a = in_type(a, factors), half_b = in_type(b, factors), stored = in_type(c, result);
            HalfGemm h{{}, factors, result};
            h.transpose_a = transpose_a, h.transpose_b = transpose_b;
            h.m = m, h.n = n, h.k = k, h.lda = g.lda, h.ldb = g.ldb, h.ldc = g.ldc, h.beta = beta;
            h.a = half_a.data(), h.b = half_b.data(), h.c = stored.data();
            CAPTURE(to_string(factors), to_string(result), transpose_a, transpose_b, beta);
            blas.gemm(h);
            g.a = a.data(), g.b = b.data(), g.c = c.data();
            blas.gemm(g);
            CHECK(stored == in_type(c, result));
          }
}

TEST_CASE("a product that cuBLAS refuses is a DeviceError with the call and the name of the status") {
  Blas blas(host_blas(), nullptr);
  const std::vector<float> values(16);
  std::vector<float> c(16);
  Gemm<float> g{.m = 4, .n = 4, .k = 4};
  g.a = values.data();
  g.b = values.data();
  g.c = c.data();
  g.lda = g.ldc = 4;
  g.ldb = 3;  // less than n
  CHECK_THROWS_WITH(blas.gemm(g),
                    ContainsSubstring("cublasSgemm_v2") && ContainsSubstring("CUBLAS_STATUS_INVALID_VALUE (7)"));
  g.batch = 2;
  CHECK_THROWS_MATCHES(blas.gemm(g), DeviceError, Says("cublasSgemmStridedBatched"));
}

// The settings of a handle, recorded by a table of fake functions.
struct Told {
  std::vector<int> modes;
  void *stream = nullptr, *workspace = nullptr;
  std::size_t workspace_bytes = 0;
  int destroyed = 0;
};
Told told;
int stream_status = 0, product_status = 0;

BlasTable recorder() {
  BlasTable table = host_blas();
  told = {};
  stream_status = product_status = 0;
  table.cublasSetMathMode = [](BlasTable::Handle, int mode) {
    told.modes.push_back(mode);
    return 0;
  };
  table.cublasSetStream_v2 = [](BlasTable::Handle, void* stream) {
    told.stream = stream;
    return stream_status;
  };
  table.cublasSetWorkspace_v2 = [](BlasTable::Handle, void* workspace, std::size_t bytes) {
    told.workspace = workspace;
    told.workspace_bytes = bytes;
    return 0;
  };
  table.cublasDestroy_v2 = [](BlasTable::Handle handle) {
    ++told.destroyed;
    return host_blas().cublasDestroy_v2(handle);
  };
  return table;
}

TEST_CASE("a handle is bound to its stream, set to strict math, and destroyed once") {
  const BlasTable table = recorder();
  int stream = 0, memory = 0;
  {
    Blas blas(table, &stream);
    CHECK(told.stream == &stream);
    CHECK(told.modes == std::vector<int>{0});
    blas.allow_tf32(true);
    blas.allow_tf32(false);
    CHECK(told.modes == std::vector<int>{0, 3, 0});
    blas.use_workspace(&memory, sizeof memory);
    CHECK(told.workspace == &memory);
    CHECK(told.workspace_bytes == sizeof memory);
    CHECK(told.destroyed == 0);
  }
  CHECK(told.destroyed == 1);
}

TEST_CASE("a half-precision product requests sums in f32, and types that the manual lists") {
  const BlasTable table = recorder();
  Blas blas(table, nullptr);
  std::vector<std::uint16_t> numbers(1);
  HalfGemm h{{}, DType::bf16, DType::bf16};
  h.m = h.n = h.k = h.lda = h.ldb = h.ldc = 1;
  h.a = h.b = numbers.data(), h.c = numbers.data();
  blas.gemm(h);
  CHECK(told.modes == std::vector<int>{0, 16});
  h.result = DType::f16;
  CHECK_THROWS_WITH(blas.gemm(h), ContainsSubstring("cublasGemmEx: CUBLAS_STATUS_NOT_SUPPORTED (15)"));
  h.factors = DType::f64;
  CHECK_THROWS_AS(blas.gemm(h), UsageError);
}

TEST_CASE("a handle that cannot be bound to its stream is destroyed") {
  const BlasTable table = recorder();
  stream_status = 7;
  CHECK_THROWS_WITH(Blas(table, nullptr), ContainsSubstring("cublasSetStream_v2"));
  CHECK(told.destroyed == 1);
}

TEST_CASE("a failed allocation of cuBLAS is OutOfMemory, when a handle is made and in a product") {
  BlasTable table = recorder();
  table.cublasSgemm_v2 = [](BlasTable::Handle, int, int, int, int, int, const float*, const float*, int, const float*,
                            int, const float*, float*, int) { return product_status; };
  Blas blas(table, nullptr);
  const Gemm<float> g{.m = 1, .n = 1, .k = 1};
  CHECK_NOTHROW(blas.gemm(g));
  product_status = cublas_number::alloc_failed;
  CHECK_THROWS_MATCHES(blas.gemm(g), OutOfMemory, Says("cublasSgemm_v2", "CUBLAS_STATUS_ALLOC_FAILED (3)"));
  table.cublasCreate_v2 = [](BlasTable::Handle*) { return product_status; };
  CHECK_THROWS_AS(Blas(table, nullptr), OutOfMemory);

  for (const int status : {1, 2, 4, 7, 13, 14, 15}) {  // other statuses are no OutOfMemory
    product_status = status;
    try {
      blas.gemm(g);
      FAIL("nothing was thrown");
    } catch (const DeviceError& error) {
      CHECK(dynamic_cast<const OutOfMemory*>(&error) == nullptr);
    }
  }
}

TEST_CASE("if the library is too old to name a status, the status's number is reported") {
  BlasTable table = host_blas();
  table.cublasGetStatusName = nullptr;
  table.cublasGetStatusString = nullptr;
  CHECK(status_text(table, 13) == "status 13");
  CHECK(status_text(host_blas(), 1) == "CUBLAS_STATUS_NOT_INITIALIZED (1): the handle is null");
}

}  // namespace
}  // namespace lamina
