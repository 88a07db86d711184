#pragma once
// Clock, temperature and power of a GPU from NVIDIA's management library, opened at run time. No program links it, and
// none of its headers is needed. The library is only read: no clock, limit or mode is ever set.

#include <string>

#include "lamina/device.h"

namespace lamina {

/// One GPU as the library sees it. Several may exist at once; the library stays open until the process ends.
class Nvml {
 public:
  static constexpr const char* usual_library = "libnvidia-ml.so.1";  ///< name of the library that the driver installs

  /// Opens the library, and the GPU at this bus address ("0000:3b:00.0", as from cudaDeviceGetPCIBusId). The library's
  /// GPU numbers are not used: they ignore CUDA_VISIBLE_DEVICES. Never throws: read() names the failures in `missing`.
  explicit Nvml(const std::string& pci_bus_id, const std::string& library = usual_library);

  /// Never throws. By NVIDIA's reference the power is an average over the last second on GPUs from Ampere on, except
  /// GA100, so it says little about a short pass.
  DeviceState read() const;

 private:
  struct Table {
    int (*nvmlInit_v2)() = nullptr;
    int (*nvmlDeviceGetHandleByPciBusId_v2)(const char* id, void** device) = nullptr;
    int (*nvmlDeviceGetClockInfo)(void* device, int clock, unsigned* mhz) = nullptr;
    int (*nvmlDeviceGetTemperature)(void* device, int sensor, unsigned* celsius) = nullptr;
    int (*nvmlDeviceGetPowerUsage)(void* device, unsigned* milliwatts) = nullptr;
    /// Before driver 535 its name was ...ThrottleReasons; the bits are the same.
    int (*nvmlDeviceGetCurrentClocksEventReasons)(void* device, unsigned long long* reasons) = nullptr;
    const char* (*nvmlErrorString)(int status) = nullptr;
  };

  std::string open(const std::string& pci_bus_id, const std::string& library);
  std::string text_of(int status) const;

  Table table_;
  void* device_ = nullptr;
  std::string failure_;  ///< reason why readings fail, or empty
};

/// "power cap, thermal slowdown" for the bits that say why a clock is lower than it could be. An idle GPU gives no
/// reason.
std::string throttle_text(unsigned long long reasons);

}  // namespace lamina
