#pragma once
// The speed of the processor's memory.

#include "lamina/devices.h"

namespace lamina {

/// Copies and triads over blocks far larger than caches, on `threads` threads at once; the fastest of several runs.
/// Both rates are 0 once `stop`, which any of the threads may call, is true.
DeviceRates measure_host(int threads, const std::function<bool()>& stop);

}  // namespace lamina
