#pragma once
// How fast the processor's memory is.

#include "lamina/devices.h"

namespace lamina {

/// Copies and triads over blocks far larger than caches, by that many threads at once; the fastest of several.
DeviceRates measure_host(int threads);

}  // namespace lamina
