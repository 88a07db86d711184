#pragma once
// The speed of the processor's memory.

#include "lamina/devices.h"

namespace lamina {

/// Copies and triads over blocks far larger than caches, on so many threads at once; the fastest of several runs.
DeviceRates measure_host(int threads);

}  // namespace lamina
