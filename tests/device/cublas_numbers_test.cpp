// The library's own constants, for builds without cuBLAS's header, equal the header's constants.

#include <cublas_v2.h>

#include "lib/core/device/blas/blas.h"
#include "tests/support/catch.h"

namespace lamina {

TEST_CASE("our constants and types of cuBLAS equal those of its header", "[no_gpu]") {
  namespace number = cublas_number;
  STATIC_REQUIRE(number::op_n == CUBLAS_OP_N);
  STATIC_REQUIRE(number::op_t == CUBLAS_OP_T);
  STATIC_REQUIRE(number::default_math == CUBLAS_DEFAULT_MATH);
  STATIC_REQUIRE(number::tf32_math == CUBLAS_TF32_TENSOR_OP_MATH);
  STATIC_REQUIRE(number::success == CUBLAS_STATUS_SUCCESS);
  STATIC_REQUIRE(number::not_initialized == CUBLAS_STATUS_NOT_INITIALIZED);
  STATIC_REQUIRE(number::alloc_failed == CUBLAS_STATUS_ALLOC_FAILED);
  STATIC_REQUIRE(number::invalid_value == CUBLAS_STATUS_INVALID_VALUE);
  STATIC_REQUIRE(number::not_supported == CUBLAS_STATUS_NOT_SUPPORTED);
  STATIC_REQUIRE(number::f32_sums_math == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  STATIC_REQUIRE(number::real_32f == CUDA_R_32F);
  STATIC_REQUIRE(number::real_16f == CUDA_R_16F);
  STATIC_REQUIRE(number::real_16bf == CUDA_R_16BF);
  STATIC_REQUIRE(number::compute_32f == CUBLAS_COMPUTE_32F);
  STATIC_REQUIRE(number::default_algorithm == CUBLAS_GEMM_DEFAULT);
  STATIC_REQUIRE(MAJOR_VERSION == 0);
  STATIC_REQUIRE(PATCH_LEVEL == 2);
  STATIC_REQUIRE(sizeof(cublasStatus_t) == sizeof(int));
  STATIC_REQUIRE(sizeof(cublasOperation_t) == sizeof(int));
  STATIC_REQUIRE(sizeof(cublasMath_t) == sizeof(int));
  STATIC_REQUIRE(sizeof(cublasHandle_t) == sizeof(BlasTable::Handle));
  // Every function has the parameters that the header declares.
  STATIC_REQUIRE(
      std::is_invocable_v<decltype(cublasSgemm_v2), cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                          const float*, const float*, int, const float*, int, const float*, float*, int>);
  STATIC_REQUIRE(std::is_invocable_v<decltype(cublasDgemmStridedBatched), cublasHandle_t, cublasOperation_t,
                                     cublasOperation_t, int, int, int, const double*, const double*, int, long long,
                                     const double*, int, long long, const double*, double*, int, long long, int>);
  using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                                const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                                cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
  STATIC_REQUIRE(std::is_pointer_v<decltype(static_cast<GemmEx*>(cublasGemmEx))>);
}

}  // namespace lamina
