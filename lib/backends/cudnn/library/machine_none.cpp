// A build without CUDA has no device for cuDNN to run on.

#include "lamina/error.h"
#include "machine.h"

namespace lamina::cudnn {

std::unique_ptr<Machine> make_cuda_machine(const BackendOptions&) {
  throw Unsupported(
      "the backend cudnn needs CUDA, which this build does not have; build where CMake finds nvcc of CUDA 12 or later. "
      "The backend eigen runs on every machine");
}

}  // namespace lamina::cudnn
