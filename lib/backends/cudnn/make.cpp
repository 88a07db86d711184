// The backend on a GPU, with the one cuDNN of this process.

#include <algorithm>
#include <utility>

#include "backend.h"
#include "lamina/error.h"

namespace lamina::cudnn {

std::unique_ptr<Backend> make_backend(const std::string& name, const BackendOptions& options) {
  const std::string kind = name.substr(0, name.find(':')),
                    directory = name.substr(std::min(name.size(), kind.size() + 1));
  if (name != kind && directory.empty())
    throw UsageError("backend " + name + ": there is no directory after the colon; give " + kind + ":<directory>, or " +
                     kind + " alone");
  std::unique_ptr<graph::UnitEngines> engines;
  if (kind == "cudnn-graph") engines = std::make_unique<graph::UnitEngines>(options.device_properties, options.plans);
  std::unique_ptr<Machine> machine = make_cuda_machine(options);
  const auto claim = std::make_shared<const Claim>(directory);
  return std::make_unique<CudnnBackend>(
      name, std::move(machine), [directory, claim]() -> const Api& { return process_library(directory); },
      std::move(engines));
}

}  // namespace lamina::cudnn
