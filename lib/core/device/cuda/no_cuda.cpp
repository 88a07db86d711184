// GPUs in a build without CUDA: always none.

#include "lamina/error.h"
#include "lib/core/device/gpu.h"

namespace lamina {
namespace {
constexpr const char* why = "this build has no CUDA; build where CMake finds nvcc of CUDA 12 or later";
}

std::string why_no_gpu() { return why; }
std::vector<DeviceInfo> cuda_devices() { return {}; }
std::vector<LibraryVersion> cuda_versions() { return {}; }
DeviceRates measure_cuda(int) { throw DeviceError(why); }

}  // namespace lamina
