#pragma once
// Matrix products by a library with cuBLAS's interface: the real one, opened at run time (blas_library.cpp), or a
// substitute that computes on the host (host_blas.cpp). No program links it. No header of CUDA is needed: a stream is a
// pointer, and an enumerator is its number.

#include <cstddef>
#include <cstdint>
#include <string>

#include "lamina/shape.h"

namespace lamina {

/// The functions of cuBLAS that the backends call, by the names that the library exports. (The header's macros hide
/// that cublasSgemm without _v2 is another, older function.) Every status is an int, where 0 is success; a handle and a
/// stream are pointers.
struct BlasTable {
  using Handle = void*;

  int (*cublasCreate_v2)(Handle* handle) = nullptr;
  int (*cublasDestroy_v2)(Handle) = nullptr;
  int (*cublasSetStream_v2)(Handle, void* stream) = nullptr;
  int (*cublasSetWorkspace_v2)(Handle, void* workspace, std::size_t bytes) = nullptr;
  int (*cublasSetMathMode)(Handle, int mode) = nullptr;
  int (*cublasSgemm_v2)(Handle, int transa, int transb, int m, int n, int k, const float* alpha, const float* a,
                        int lda, const float* b, int ldb, const float* beta, float* c, int ldc) = nullptr;
  int (*cublasDgemm_v2)(Handle, int transa, int transb, int m, int n, int k, const double* alpha, const double* a,
                        int lda, const double* b, int ldb, const double* beta, double* c, int ldc) = nullptr;
  int (*cublasSgemmStridedBatched)(Handle, int transa, int transb, int m, int n, int k, const float* alpha,
                                   const float* a, int lda, long long stride_a, const float* b, int ldb,
                                   long long stride_b, const float* beta, float* c, int ldc, long long stride_c,
                                   int batch) = nullptr;
  int (*cublasDgemmStridedBatched)(Handle, int transa, int transb, int m, int n, int k, const double* alpha,
                                   const double* a, int lda, long long stride_a, const double* b, int ldb,
                                   long long stride_b, const double* beta, double* c, int ldc, long long stride_c,
                                   int batch) = nullptr;
  int (*cublasGemmEx)(Handle, int transa, int transb, int m, int n, int k, const void* alpha, const void* a, int a_type,
                      int lda, const void* b, int b_type, int ldb, const void* beta, void* c, int c_type, int ldc,
                      int compute_type, int algorithm) = nullptr;
  int (*cublasGetProperty)(int which, int* value) = nullptr;   ///< 0, 1, 2: major, minor, patch; needs no device
  const char* (*cublasGetStatusName)(int status) = nullptr;    ///< 11.4 and later; may be null
  const char* (*cublasGetStatusString)(int status) = nullptr;  ///< 11.4 and later; may be null
};

/// The numbers of cuBLAS's enumerators. They are the same in versions 11, 12 and 13.
namespace cublas_number {
constexpr int op_n = 0, op_t = 1;
constexpr int default_math = 0, tf32_math = 3;
constexpr int f32_sums_math = 16;  ///< CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION: no partial sums in 16 bits
constexpr int real_32f = 0, real_16f = 2, real_16bf = 14;  ///< cudaDataType
constexpr int compute_32f = 68, default_algorithm = -1;
constexpr int success = 0, not_initialized = 1, alloc_failed = 3, invalid_value = 7, not_supported = 15;
}  // namespace cublas_number

/// c = alpha op(a) op(b) + beta c, all row-major: op(a) is m x k, op(b) is k x n, c is m x n. A leading
/// dimension is the distance between two rows of the matrix as stored. With beta 0, c is not read. A batch repeats this
/// with the three matrices advanced by their strides, in elements. T is the type of alpha and beta.
template <class T, class Element = T>
struct Gemm {
  bool transpose_a = false, transpose_b = false;
  int m, n, k;
  T alpha = 1;
  const Element* a = nullptr;
  int lda = 0;
  const Element* b = nullptr;
  int ldb = 0;
  T beta = 0;
  Element* c = nullptr;
  int ldc = 0;
  int batch = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
};

/// A product of factors in f16 or bf16, added up in f32. The result is of the factors' type, rounded once, or of f32.
struct HalfGemm : Gemm<float, void> {
  DType factors = DType::f16, result = DType::f16;
};

/// A handle of the library, bound to a stream. One thread at a time.
class Blas {
 public:
  /// The workspace that the library needs for full speed on the newest devices, with one stream and in a CUDA graph.
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
  /// The least workspace. By its manual (cublasSetWorkspace), cuBLAS may fail with ALLOC_FAILED if given less; the
  /// manual does not mention zero.
  static constexpr std::size_t least_workspace_bytes = std::size_t{16} << 10;

  /// Allocates the library's own memory on the device, and takes a while. The table must outlive it. Throws OutOfMemory
  /// if the library runs out of memory, as every call here may, and DeviceError.
  Blas(const BlasTable& table, void* stream);
  ~Blas();
  Blas(const Blas&) = delete;  // one owner of the handle
  Blas& operator=(const Blas&) = delete;

  /// Makes all further work use this memory, aligned to 256 bytes, in place of the library's own. Nothing is then
  /// allocated while work runs or is recorded. The caller keeps ownership.
  void use_workspace(void* workspace, std::size_t bytes);

  /// Whether fp32 products may round their factors to tf32; initially they may not.
  void allow_tf32(bool allowed);

  /// Enqueues; does not wait. Throws OutOfMemory, DeviceError.
  void gemm(const Gemm<float>&);
  void gemm(const Gemm<double>&);
  void gemm(const HalfGemm&);  ///< without a batch

 private:
  void check(int status, const char* call) const;

  const BlasTable* table_;
  BlasTable::Handle handle_ = nullptr;
};

/// "CUBLAS_STATUS_NOT_INITIALIZED (1): the library was not initialized", with the text if the library has one.
std::string status_text(const BlasTable&, int status);

struct BlasLibrary {
  BlasTable table;
  std::string path;     ///< path of the file that was opened
  std::string version;  ///< "13.1.0"

  std::string description() const { return "cuBLAS " + version; }
};

/// Opens the cuBLAS of a folder. Without a folder, it takes the library that the process has already loaded, else the
/// library that the loader finds, else the library of a toolkit: in CUDA_HOME, in CUDA_PATH, or the build's. `major` is
/// the wanted version, which must fit the build of cuDNN: 11, 12 or 13; 0 takes the newest. An opened library stays
/// open. Needs no device. Throws LoadError with the missing entry points or, from its second line on, every place that
/// was tried.
BlasLibrary open_blas(const std::string& directory = {}, int major = 0);

/// The one cuBLAS of the process, opened by the first call that succeeds. Throws LoadError as open_blas does, and if a
/// later call names another folder.
const BlasLibrary& blas_library(const std::string& directory = {});

/// A substitute for cuBLAS that computes on the host, with plain loops: for the backend cuda-host, and for tests.
/// Every entry behaves as cuBLAS's does, with column-major matrices, but does its work during the call. Streams,
/// workspaces and math modes are accepted and have no effect. Each element is one sum in rising order of k, in the type
/// of alpha and beta.
const BlasTable& host_blas();

}  // namespace lamina
