// The machine of cuda-host: the process's own memory, and kernels that run during their launch.

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "kernels/host/device_memory.h"
#include "lamina/error.h"
#include "lib/core/device/blas/blas.h"
#include "lib/core/device/host/host_device.h"
#include "lib/core/numbers/rounding.h"
#include "machine.h"

namespace lamina::cuda_host {
namespace {

/// A table entry that calls the host's function. The device's memory is open to the host during the call.
template <auto Entry, class Function = std::remove_reference_t<decltype(std::declval<BlasTable&>().*Entry)>>
struct Opened;
template <auto Entry, class... P>
struct Opened<Entry, int (*)(P...)> {
  static int call(P... p) {
    const host::OpenMemory open;
    return (host_blas().*Entry)(p...);
  }
};

const BlasTable& device_blas() {
  static const BlasTable* const table = [] {
    auto* const made = new BlasTable(host_blas());  // never deleted: a backend may live until the process ends
    made->cublasSgemm_v2 = &Opened<&BlasTable::cublasSgemm_v2>::call;
    made->cublasDgemm_v2 = &Opened<&BlasTable::cublasDgemm_v2>::call;
    made->cublasSgemmStridedBatched = &Opened<&BlasTable::cublasSgemmStridedBatched>::call;
    made->cublasDgemmStridedBatched = &Opened<&BlasTable::cublasDgemmStridedBatched>::call;
    return made;
  }();
  return *table;
}

}  // namespace

struct Machine::Body {
  HostDevice device;
  std::optional<Blas> blas;
};

Machine::Machine(const BackendOptions& options)
    : Launcher{[] { return Stream(); }, "cuda-host"}, body_(new Body{HostDevice(1, options.memory_limit), {}}) {
  if (options.device != 0)
    throw UsageError("cuda-host: no device " + std::to_string(options.device) +
                     "; device 0, the host, is the only one");
}
Machine::~Machine() = default;

std::string Machine::unavailable() const { return {}; }
std::string Machine::describe() { return "CUDA kernels as the host runs them, for tests"; }
Device& Machine::device() { return body_->device; }

Blas& Machine::blas(void* workspace) {
  if (reinterpret_cast<std::uintptr_t>(workspace) % block_alignment != 0)
    throw DeviceError("cuda-host: the workspace of cuBLAS must be aligned to 256 bytes");
  if (!body_->blas) body_->blas.emplace(device_blas(), nullptr);
  return *body_->blas;
}

bool Machine::has_blas() const { return true; }
void Machine::make_blas(DType) { blas(nullptr); }
double Machine::peak_flops_per_second(DType) { return 0; }
std::size_t Machine::blas_workspace_bytes() { return 0; }

}  // namespace lamina::cuda_host
