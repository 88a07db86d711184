#pragma once
// The peak rate of repeated work on a device.

#include <functional>

#include "lamina/device.h"

namespace lamina {

/// Operations per second of `work(rounds)`, which enqueues `rounds` rounds of `flops_per_round` operations. The result
/// is the fastest of 20 runs of about 2 ms, after the device's clock has settled, without the time of the host's
/// launches.
double peak_rate(Device&, double flops_per_round, const std::function<void(int rounds)>& work);

}  // namespace lamina
