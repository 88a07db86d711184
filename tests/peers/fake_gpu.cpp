// What bench/race/gpu.py calls of libcuda and of NVML, for one device of which some readings are unknown.

#include <cstddef>
#include <cstring>

namespace {

// The identity as the driver has it, and as text: 00010203-0405-0607-0809-0a0b0c0d0e0f.
constexpr const char* identity = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f";
int device_of_nvml = 0;

bool known(const void* device) { return device == &device_of_nvml; }

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }

int cuGetErrorName(int, const char** text) {
  *text = "CUDA_ERROR_MADE_UP";
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}

int cuDeviceGet(int* device, int index) {
  *device = index + 7;
  return index == 0 ? 0 : 101;
}

int cuDeviceGetName(char* name, int size, int device) {
  std::strncpy(name, "Fake H200", static_cast<std::size_t>(size));
  return device == 7 ? 0 : 101;
}

int cuDeviceGetUuid_v2(char* bytes, int device) {
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<char>(i);
  return device == 7 ? 0 : 101;
}

int nvmlInit_v2() { return 0; }

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  *device = &device_of_nvml;  // an address of 64 bits
  return std::strcmp(uuid, identity) == 0 ? 0 : 6;
}

int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* megahertz) {
  *megahertz = 1980;
  return known(device) && clock == 1 ? 0 : 2;
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* degrees) {
  *degrees = 41;
  return known(device) && sensor == 0 ? 3 : 2;  // not supported
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 123400;
  return known(device) ? 0 : 2;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = (1ULL << 40) + 0x1 + 0x4 + 0x20;  // one that nobody knows, idle, power cap, thermal slowdown
  return known(device) ? 0 : 2;
}

}  // extern "C"
