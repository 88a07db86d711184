// The backend on a GPU, with the one cuDNN of this process.

#include "backend.h"
#include "lamina/error.h"

namespace lamina::cudnn {

std::unique_ptr<Backend> make_backend(const std::string& name, const std::string& directory,
                                      const BackendOptions& options) {
  if (name != "cudnn" && directory.empty())
    throw UsageError("backend " + name +
                     ": there is no directory after the colon; give cudnn:<directory>, or cudnn alone");
  std::unique_ptr<Machine> machine = make_cuda_machine(options);
  const auto claim = std::make_shared<const Claim>(directory);
  return std::make_unique<CudnnBackend>(name, std::move(machine),
                                        [directory, claim]() -> const Api& { return process_library(directory); });
}

}  // namespace lamina::cudnn
