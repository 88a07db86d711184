// NVIDIA's management library. Entry points, numbers and units are those of its public API reference.

#include "nvml.h"

#include <dlfcn.h>

#include <utility>

#include "lib/core/system/shared_library.h"

namespace lamina {
namespace {

constexpr int success = 0, sm_clock = 1, gpu_sensor = 0;

void add(std::string& list, const std::string& more) { list += (list.empty() ? "" : "; ") + more; }

}  // namespace

std::string throttle_text(unsigned long long reasons) {
  // The reasons that limit a clock, by bit. Bit 0 is not listed: it means an idle GPU, whose clock is not limited.
  constexpr std::pair<unsigned long long, const char*> names[] = {
      {0x2, "application clocks"}, {0x4, "power cap"},         {0x8, "hardware slowdown"},
      {0x10, "sync boost"},        {0x20, "thermal slowdown"}, {0x40, "hardware thermal slowdown"},
      {0x80, "power brake"},       {0x100, "display clocks"}};
  std::string text;
  for (const auto& [bit, name] : names)
    if ((reasons & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

Nvml::Nvml(const std::string& pci_bus_id, const std::string& library) : failure_(open(pci_bus_id, library)) {}

/// Empty, or the reason why readings will fail.
std::string Nvml::open(const std::string& pci_bus_id, const std::string& library) {
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return loader_error(library);
  resolve(opened, "nvmlErrorString", table_.nvmlErrorString);
  resolve(opened, "nvmlInit_v2", table_.nvmlInit_v2);
  resolve(opened, "nvmlDeviceGetHandleByPciBusId_v2", table_.nvmlDeviceGetHandleByPciBusId_v2);
  if (table_.nvmlInit_v2 == nullptr) return library + " lacks nvmlInit_v2";
  if (table_.nvmlDeviceGetHandleByPciBusId_v2 == nullptr) return library + " lacks nvmlDeviceGetHandleByPciBusId_v2";
  resolve(opened, "nvmlDeviceGetClockInfo", table_.nvmlDeviceGetClockInfo);
  resolve(opened, "nvmlDeviceGetTemperature", table_.nvmlDeviceGetTemperature);
  resolve(opened, "nvmlDeviceGetPowerUsage", table_.nvmlDeviceGetPowerUsage);
  resolve(opened, "nvmlDeviceGetCurrentClocksEventReasons", table_.nvmlDeviceGetCurrentClocksEventReasons);
  if (table_.nvmlDeviceGetCurrentClocksEventReasons == nullptr)
    resolve(opened, "nvmlDeviceGetCurrentClocksThrottleReasons", table_.nvmlDeviceGetCurrentClocksEventReasons);

  // The library counts its users. This process never unregisters, so that the library stays initialised.
  if (const int status = table_.nvmlInit_v2(); status != success) return "nvmlInit_v2: " + text_of(status);
  if (const int status = table_.nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id.c_str(), &device_); status != success)
    return "nvmlDeviceGetHandleByPciBusId_v2(" + pci_bus_id + "): " + text_of(status);
  return {};
}

std::string Nvml::text_of(int status) const {
  const char* const text = table_.nvmlErrorString == nullptr ? nullptr : table_.nvmlErrorString(status);
  return (text == nullptr ? "status" : std::string(text)) + " (" + std::to_string(status) + ")";
}

DeviceState Nvml::read() const {
  DeviceState state;
  if (!failure_.empty()) {
    state.missing = failure_;
    return state;
  }
  /// Whether the call succeeded; its entry point may be absent.
  const auto answered = [&](const char* what, auto* entry, auto... arguments) {
    const int status = entry == nullptr ? success : entry(device_, arguments...);
    if (entry == nullptr) add(state.missing, std::string(what) + ": no such entry point");
    if (status != success) add(state.missing, std::string(what) + ": " + text_of(status));
    return entry != nullptr && status == success;
  };
  unsigned value = 0;
  if (answered("SM clock", table_.nvmlDeviceGetClockInfo, sm_clock, &value)) state.sm_mhz = value;
  if (answered("temperature", table_.nvmlDeviceGetTemperature, gpu_sensor, &value)) state.temperature_c = value;
  if (answered("power", table_.nvmlDeviceGetPowerUsage, &value)) state.power_w = 1e-3 * value;
  unsigned long long reasons = 0;
  if (answered("throttle reasons", table_.nvmlDeviceGetCurrentClocksEventReasons, &reasons))
    state.throttled = throttle_text(reasons);
  return state;
}

}  // namespace lamina
