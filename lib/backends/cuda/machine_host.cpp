// The machine of cuda-host: the process's own memory, and kernels that run while they are launched.

#include <optional>

#include "../../device/host_blas.h"
#include "../../device/host_device.h"
#include "lamina/error.h"
#include "machine.h"

namespace lamina::cuda_host {

struct Machine::Body {
  HostDevice device;
  std::optional<Blas> blas;
};

Machine::Machine(const BackendOptions& options) : body_(new Body{HostDevice(1, options.memory_limit), {}}) {
  if (options.device != 0)
    throw UsageError("cuda-host: no device " + std::to_string(options.device) +
                     "; the host is device 0, and the only one");
}
Machine::~Machine() = default;

const char* Machine::backend_name() { return "cuda-host"; }
std::string Machine::unavailable() const { return {}; }
std::string Machine::describe() { return "CUDA kernels as the host runs them, for tests"; }
Device& Machine::device() { return body_->device; }
Stream Machine::stream() { return nullptr; }

Blas& Machine::blas(void*) {
  if (!body_->blas) body_->blas.emplace(host_blas(), nullptr);
  return *body_->blas;
}

bool Machine::has_blas() const { return true; }
void Machine::make_blas() { blas(nullptr); }
double Machine::peak_flops(DType) { return 0; }
std::size_t Machine::blas_workspace_bytes() { return 0; }

}  // namespace lamina::cuda_host
