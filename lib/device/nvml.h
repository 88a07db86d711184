#pragma once
// Clock, temperature and power of a GPU by NVIDIA's management library, opened at run time: nothing links it, and no
// header of it is needed. It only reads: no clock, limit or mode is ever set.

#include <optional>
#include <string>

#include "lamina/device.h"

namespace lamina {

/// One GPU as the library knows it. Several may live at once; the library stays open until the process ends.
class Nvml {
 public:
  static constexpr const char* usual_library = "libnvidia-ml.so.1";  ///< the driver's, by name

  /// Opens the library, and in it the GPU at this place on the bus ("0000:3b:00.0", as cudaDeviceGetPCIBusId has it):
  /// its numbers of GPUs are not those of a process whose CUDA_VISIBLE_DEVICES hides some. Never throws: what fails is
  /// in every state's `missing`.
  explicit Nvml(const std::string& pci_bus_id, const std::string& library = usual_library);

  /// Never throws. By NVIDIA's reference the power is an average over the last second on GPUs from Ampere on, GA100
  /// aside: of a short pass it says little.
  DeviceState read() const;

  /// Energy of the GPU since the driver was loaded; nothing where it does not report it.
  std::optional<double> energy_joules() const;

 private:
  struct Table {
    int (*nvmlInit_v2)() = nullptr;
    int (*nvmlDeviceGetHandleByPciBusId_v2)(const char* id, void** device) = nullptr;
    int (*nvmlDeviceGetClockInfo)(void* device, int clock, unsigned* mhz) = nullptr;
    int (*nvmlDeviceGetTemperature)(void* device, int sensor, unsigned* celsius) = nullptr;
    int (*nvmlDeviceGetPowerUsage)(void* device, unsigned* milliwatts) = nullptr;
    /// ...ThrottleReasons before driver 535; the same bits.
    int (*nvmlDeviceGetCurrentClocksEventReasons)(void* device, unsigned long long* reasons) = nullptr;
    int (*nvmlDeviceGetTotalEnergyConsumption)(void* device, unsigned long long* millijoules) = nullptr;
    const char* (*nvmlErrorString)(int status) = nullptr;
  };

  std::string open(const std::string& pci_bus_id, const std::string& library);
  std::string text_of(int status) const;

  Table table_;
  void* device_ = nullptr;
  std::string failure_;  ///< why nothing can be read, or empty
};

/// "power cap, thermal slowdown" for the bits that say why a clock is lower than it could be; that the GPU is idle is
/// not one of them.
std::string throttle_text(unsigned long long reasons);

}  // namespace lamina
