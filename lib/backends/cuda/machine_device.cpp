// The machine of the backend cuda: one GPU, opened when it is first asked for.

#include <optional>

#include "../../device/blas_library.h"
#include "../../device/cuda_device.h"
#include "../../device/gpu.h"
#include "lamina/error.h"
#include "machine.h"

namespace lamina::cuda {

struct Machine::Body {
  int number;
  CudaDevice device;
  std::optional<Blas> blas;  // made last, gone first
};

Machine::Machine(const BackendOptions& options)
    : body_(new Body{options.device, CudaDevice(options.device, options.memory_limit), {}}) {}
Machine::~Machine() = default;

const char* Machine::backend_name() { return "cuda"; }

std::string Machine::unavailable() const {
  const std::string why = cuda_unavailable(body_->number);
  return why.empty() ? why : "cuda: " + why;
}

std::string Machine::describe() {
  std::string text = "CUDA kernels of lamina";
  for (const LibraryVersion& library : cuda_versions()) text += ", " + library.name + " " + library.version;
  return text;
}

Device& Machine::device() { return body_->device; }
Stream Machine::stream() { return body_->device.stream(); }

Blas& Machine::blas() {
  if (!body_->blas) body_->blas.emplace(blas_library().table, body_->device.stream());
  return *body_->blas;
}

bool Machine::has_blas() const {
  try {
    blas_library();
    return true;
  } catch (const LoadError&) {
    return false;
  }
}

std::size_t Machine::blas_workspace_bytes() { return Blas::workspace_bytes; }

}  // namespace lamina::cuda
