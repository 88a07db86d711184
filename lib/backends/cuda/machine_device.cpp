// The machine of the backend cuda: one GPU, opened at its first use.

#include <optional>

#include "lamina/error.h"
#include "lib/core/device/blas/blas.h"
#include "lib/core/device/cuda/cuda_device.h"
#include "lib/core/device/gpu.h"
#include "lib/core/device/math_environment.h"
#include "machine.h"

namespace lamina::cuda {

struct Machine::Body {
  int number;
  CudaDevice device;
  const BlasLibrary* library;  // opened library; null until then
  std::string why_no_library;  // error of the only attempt: an attempt searches many folders
  std::optional<Blas> blas;    // made last, destroyed first

  const BlasLibrary* find_library() {
    if (library != nullptr || !why_no_library.empty()) return library;
    try {
      library = &blas_library();
    } catch (const LoadError& error) {
      why_no_library = error.what();
    }
    return library;
  }

  const BlasLibrary& need_library() {
    if (find_library() == nullptr) throw LoadError(why_no_library);
    return *library;
  }

  Blas& open_blas() {
    if (!blas) blas.emplace(need_library().table, device.stream());
    return *blas;
  }
};

Machine::Machine(const BackendOptions& options)
    : Launcher{[this] { return body_->device.stream(); }, "cuda"},
      body_(new Body{options.device, CudaDevice(options.device, options.memory_limit), nullptr, {}, {}}) {}
Machine::~Machine() = default;

std::string Machine::unavailable() const {
  const std::string why = cuda_unavailable(body_->number);
  return why.empty() ? why : "cuda: " + why;
}

std::string Machine::describe() {
  std::string text = "CUDA kernels of lamina";
  for (const LibraryVersion& library : cuda_versions()) text += ", " + library.name + " " + library.version;
  const BlasLibrary* const blas = body_->find_library();
  if (blas != nullptr) return text + ", " + blas->description() + math_environment();
  const std::string& why = body_->why_no_library;
  return text + ", without cuBLAS: " + why.substr(0, why.find('\n')) + math_environment();
}

Device& Machine::device() { return body_->device; }

Blas& Machine::blas(void* workspace) {
  Blas& blas = body_->open_blas();
  blas.use_workspace(workspace, Blas::workspace_bytes);
  return blas;
}

bool Machine::has_blas() const { return body_->find_library() != nullptr; }

void Machine::make_blas(DType dtype) {
  check_math_environment(backend, dtype, Math::strict, Products::of_cublas);
  body_->need_library();
  if (unavailable().empty()) body_->open_blas();
}

double Machine::peak_flops_per_second(DType dtype) {
  return cuda_peak_flops_per_second(body_->device, is_half(dtype) ? DType::f32 : dtype);  // halves are computed in f32
}

std::size_t Machine::blas_workspace_bytes() { return Blas::workspace_bytes; }

}  // namespace lamina::cuda
