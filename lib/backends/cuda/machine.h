#pragma once
// The device that runs the kernels: a GPU for the backend cuda, the host for cuda-host.

#include <cstddef>
#include <memory>
#include <string>

#include "lamina/backend.h"
#include "lib/backends/gpu_ops/gpu_ops.h"

namespace lamina {
class Blas;
}

namespace lamina::LAMINA_CUDA_SPACE {

/// Opens its device at the first use, for example at the first stream(). Outlives every kernel.
class Machine : public Launcher {
 public:
  explicit Machine(const BackendOptions&);
  ~Machine();
  Machine(const Machine&) = delete;  // kernels keep references
  Machine& operator=(const Machine&) = delete;

  std::string unavailable() const;  ///< empty, or why the device is not available
  std::string describe();           ///< opens cuBLAS to name its version, or the reason why it cannot be opened
  Device& device();
  bool has_blas() const;  ///< whether cuBLAS can be opened; touches no device; tries only once
  /// Makes the object that blas() returns, if there is a device. Call it when lowering to a step that uses blas(): a
  /// pass that is being recorded cannot make it. Throws LoadError if cuBLAS cannot be opened, DeviceError, and
  /// UsageError if environment variables change the math of this type's products: it must be strict.
  void make_blas(DType);
  /// Products on stream(): cuBLAS, opened at the first call, or its substitute on the host. From now on products use
  /// `workspace`, a block of blas_workspace_bytes(). Throws LoadError, DeviceError.
  Blas& blas(void* workspace);
  static std::size_t blas_workspace_bytes();
  double peak_flops_per_second(DType);  ///< 0 on the host: the kernels are not written for its units

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace lamina::LAMINA_CUDA_SPACE
