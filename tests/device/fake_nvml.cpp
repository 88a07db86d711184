// A fake of NVIDIA's management library, for tests of its reader. It has one GPU, at 0000:3b:00.0. With LACKING it
// lacks the function that finds a GPU. With OLD the function for throttle reasons has its older name, there is no
// power, and the temperature is unsupported. With REFUSING it does not start.

#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
int gpu = 0;
constexpr int uninitialized = 1, invalid_argument = 2, not_supported = 3, not_found = 6, driver_not_loaded = 9;
bool initialized = false;
int check(const void* device) { return !initialized ? uninitialized : device == &gpu ? 0 : invalid_argument; }
}  // namespace

EXPORT const char* nvmlErrorString(int status) { return status == not_supported ? "Not Supported" : "Other Error"; }

EXPORT int nvmlInit_v2() {
#if defined(REFUSING)
  return driver_not_loaded;
#endif
  initialized = true;
  return 0;
}

#if !defined(LACKING)
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  if (!initialized) return uninitialized;
  if (std::strcmp(id, "0000:3b:00.0") != 0) return not_found;
  *device = &gpu;
  return 0;
}
#endif

// `clock` is 0 to 3: graphics, SM, memory, video
EXPORT int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* mhz) {
  const unsigned clocks[] = {1111, 1755, 2619, 1444};
  if (clock < 0 || clock > 3) return invalid_argument;
  *mhz = clocks[clock];
  return check(device);
}

EXPORT int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
#if defined(OLD)
  return not_supported;
#endif
  if (sensor != 0) return invalid_argument;
  *celsius = 61;
  return check(device);
}

#if defined(OLD)
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = 0x1;
  return check(device);
}
#else
EXPORT int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 678'900;
  return check(device);
}
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  *reasons = 0x1 | 0x4 | 0x40;
  return check(device);
}
#endif
