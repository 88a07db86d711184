#pragma once
// The device that the kernels run on: a GPU for the backend cuda, the host for cuda-host.

#include <cstddef>
#include <memory>
#include <string>

#include "../../../kernels/common/stream.h"
#include "lamina/backend.h"

namespace lamina {
class Blas;
}

namespace lamina::LAMINA_CUDA_SPACE {

/// Opens its device when first asked for it. Outlives every kernel.
class Machine {
 public:
  explicit Machine(const BackendOptions&);
  ~Machine();
  Machine(const Machine&) = delete;  // kernels keep references
  Machine& operator=(const Machine&) = delete;

  static const char* backend_name();  ///< "cuda" or "cuda-host"
  std::string unavailable() const;    ///< empty, or why there is no such device here
  std::string describe();             ///< opens cuBLAS for its version, or tells in the same line why there is none
  Device& device();
  Stream stream();
  bool has_blas() const;  ///< whether blas() can be opened; touches no device, tries once
  /// Makes blas() where there is a device, so that no pass does: a pass may be recorded, and making it cannot be.
  /// Whoever lowers to a step that uses it calls this. Throws LoadError where it cannot be opened, DeviceError, and
  /// UsageError where the environment makes its products of this type something else than strict.
  void make_blas(DType);
  /// Products on that stream: cuBLAS, opened at the first call, or its stand-in on the host. From now on they work in
  /// `workspace`, of blas_workspace_bytes. Throws LoadError, DeviceError.
  Blas& blas(void* workspace);
  static std::size_t blas_workspace_bytes();
  double peak_flops(DType);  ///< of Backend::peak_flops; 0 on the host, whose own units are not the kernels'

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace lamina::LAMINA_CUDA_SPACE
