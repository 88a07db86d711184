#pragma once
// Queries about GPUs, for the rest of this folder. cuda_info.cpp answers by the CUDA runtime; in a build without CUDA,
// no_cuda.cpp finds none. Both also define why_no_gpu(). The speed of the processor's memory is here, too.

#include <functional>
#include <string>
#include <vector>

#include "lamina/devices.h"

namespace lamina {

std::vector<DeviceInfo> cuda_devices();       ///< never throws
DeviceInfo cuda_device_info(int number);      ///< only with CUDA; throws DeviceError
std::vector<LibraryVersion> cuda_versions();  ///< versions of driver and runtime; never throws
std::string cuda_version_text(int version);   ///< "13.0" for 13000; only with CUDA
std::string cuda_bus_id(int number);          ///< "0000:3b:00.0"; only with CUDA; throws DeviceError
DeviceRates measure_cuda(int number);         ///< throws DeviceError, OutOfMemory

/// Copies and triads over blocks far larger than caches, on `threads` threads at once; the fastest of several runs.
/// Any of the threads may call `stop`. Once it returns true, a rate that is not measured yet is 0.
DeviceRates measure_host(int threads, const std::function<bool()>& stop);

/// Units of one multiprocessor: fp32 units, and fused multiply-adds per clock in tf32 and fp16 tensor units; 0:
/// unknown.
struct MultiprocessorUnits {
  int fp32 = 0, tf32 = 0, fp16 = 0;
};
MultiprocessorUnits units_of(int major, int minor);  ///< units of a compute capability

}  // namespace lamina
