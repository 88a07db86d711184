// The devices of this machine, of every kind.

#include "lamina/devices.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>

#include "gpu.h"
#include "lamina/error.h"
#include "lib/core/device/blas/blas.h"
#include "lib/core/device/host/host_device.h"
#include "lib/core/system/usable_threads.h"

namespace lamina {
namespace {

DeviceInfo processor() {
  DeviceInfo info;
  info.name = processor_name();
#if defined(__x86_64__)
  info.architecture = "x86_64";
#elif defined(__aarch64__)
  info.architecture = "aarch64";
#endif
  info.memory_bytes =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  info.cores = usable_cores();
  return info;
}

/// The version of the cuDNN that the loader finds. The library encodes it as major * 1000 + minor * 100 + patch; from 9
/// on the factor of major is 10000.
std::string cudnn_version() {
  for (const char* const name : {"libcudnn.so.9", "libcudnn.so.8"}) {
    void* const opened = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (opened == nullptr) continue;
    using Version = std::size_t();
    auto* const version = reinterpret_cast<Version*>(dlsym(opened, "cudnnGetVersion"));
    if (version == nullptr) return std::string(name) + " without a version";
    const std::size_t number = version();
    const std::size_t major = number >= 10000 ? number / 10000 : number / 1000;
    const std::size_t rest = number >= 10000 ? number % 10000 : number % 1000;
    return std::to_string(major) + "." + std::to_string(rest / 100) + "." + std::to_string(rest % 100);
  }
  return "not found";
}

}  // namespace

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> found = cuda_devices();
  found.insert(found.begin(), processor());
  return found;
}

std::vector<LibraryVersion> device_libraries(bool loaded) {
  std::vector<LibraryVersion> found = cuda_versions();
  if (!loaded) return found;
  try {
    found.push_back({"cuBLAS", blas_library().version});
  } catch (const LoadError&) {
    found.push_back({"cuBLAS", "not found"});
  }
  found.push_back({"cuDNN", cudnn_version()});
  return found;
}

DeviceRates measure(const DeviceInfo& device, const std::function<bool()>& stop) {
  if (device.kind == DeviceInfo::Kind::gpu) return measure_cuda(device.number);
  return measure_host(
      device.cores, stop ? stop : [] { return false; });
}

// The numbers are from each architecture's programming guide and white paper.
MultiprocessorUnits units_of(int major, int minor) {
  static constexpr std::array<int, 4> known[] = {
      // compute capability; fp32 units; multiply-adds per clock in tf32 and fp16
      {50, 128, 0, 0},        {52, 128, 0, 0},        {53, 128, 0, 0},  {60, 64, 0, 0},       {61, 128, 0, 0},
      {62, 128, 0, 0},        {70, 64, 0, 512},       {72, 64, 0, 512}, {75, 64, 0, 512},  // Volta, Turing
      {80, 64, 512, 1024},    {86, 128, 256, 512},    {87, 128, 0, 0},  {89, 128, 256, 512},  {90, 128, 1024, 2048},
      {100, 128, 2048, 4096}, {103, 128, 2048, 4096}, {110, 128, 0, 0}, {120, 128, 256, 512}, {121, 128, 256, 512}};
  for (const auto& [capability, fp32, tf32, fp16] : known)
    if (capability == 10 * major + minor) return {fp32, tf32, fp16};
  return {};
}

}  // namespace lamina
