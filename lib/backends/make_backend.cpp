// Every backend by its name. This is the only place with the whole list.

#include <string>
#include <vector>

#include "lamina/backend.h"
#include "lamina/error.h"
#include "lib/backends/cuda/backend.h"
#include "lib/backends/cudnn/backend.h"
#include "lib/backends/eigen/backend.h"

namespace lamina {

std::vector<std::string> backend_names() { return {"eigen", "cuda", "cuda-host", "cudnn", "cudnn-graph"}; }

std::shared_ptr<Backend> make_backend(const std::string& name, const BackendOptions& options) {
  if (options.device < 0)
    throw UsageError("backend " + name + ": device is " + std::to_string(options.device) + "; give 0 or above");
  if (name == "eigen") return eigen::make_backend(options);
  if (name == "cuda") {
#if defined(LAMINA_WITH_CUDA)
    return cuda::make_backend(options);
#else
    throw Unsupported(
        "this build has no backend cuda; it needs the CUDA kernels, which a build contains where CMake finds nvcc of "
        "CUDA 12 or later. The backend eigen runs on every machine");
#endif
  }
  if (name == "cuda-host") {
#if defined(LAMINA_WITH_CUDA_HOST)
    return cuda_host::make_backend(options);
#else
    throw Unsupported(
        "this build has no backend cuda-host, which runs the CUDA kernels on the host for tests; configure with "
        "-DLAMINA_CUDA_HOST=ON");
#endif
  }
  if (const std::string kind = name.substr(0, name.find(':')); kind == "cudnn" || kind == "cudnn-graph")
    return cudnn::make_backend(name, options);
  throw UsageError("no backend \"" + name + "\": " + near_names(name, backend_names()));
}

}  // namespace lamina
