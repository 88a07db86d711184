// The backend on a GPU, with the one cuDNN of this process.

#include "backend.h"

namespace lamina::cudnn {

std::unique_ptr<Backend> make_backend(const std::string& name, const std::string& directory,
                                      const BackendOptions& options) {
  if (name != "cudnn" && directory.empty())
    throw UsageError("backend " + name + ": no directory behind the colon; give cudnn:<directory>, or cudnn alone");
  return std::make_unique<CudnnBackend>(
      name, make_cuda_machine(options), [directory]() -> const Api& { return process_library(directory); },
      options.choice_cache);
}

}  // namespace lamina::cudnn
