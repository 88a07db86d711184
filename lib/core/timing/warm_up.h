#pragma once
// Warming a device up until its clock has settled.

#include <functional>

#include "lamina/device.h"

namespace lamina {

/// Repeats `work`, which enqueues, until the device has worked for 50 ms and two consecutive batches of about 10 ms
/// agree within 2 % in the time of a run and in the clock that the device reports; at most for about a second.
/// Does nothing on a device without a queue: a processor's caches and threads are warm after one pass.
void warm_up(Device&, const std::function<void()>& work);

}  // namespace lamina
