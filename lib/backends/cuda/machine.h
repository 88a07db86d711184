#pragma once
// The device that the kernels run on: a GPU for the backend cuda, the host for cuda-host.

#include <memory>
#include <string>

#include "../../../kernels/stream.h"
#include "lamina/backend.h"

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
  std::string describe();
  Device& device();
  Stream stream();

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace lamina::LAMINA_CUDA_SPACE
