#pragma once
// Launches kept out of a time: the device's queue is held while the host enqueues what is timed.

#include <functional>

#include "lamina/device.h"

namespace lamina {

/// Times without the host's launches. A device that is idle comes to the first mark before the host has enqueued the
/// work, and the time between the marks then has the host's launches in it. So the queue is held first, for about twice
/// as long as the host needed the last time, and afterwards it is checked that this was long enough.
class HeldLaunches {
 public:
  explicit HeldLaunches(Device& device) : device_(&device) {}

  /// Calls enqueue(), which marks the start of `first` and enqueues work and further marks, while the queue is held.
  /// Where the queue had come to the first mark before all was enqueued, enqueue() is called again after a longer
  /// delay, up to the device's longest. Returns whether the launches were hidden in the last call: never on a device
  /// without a queue, and not where the longest delay was too short, as for work that waits for the device.
  bool run(Timer& first, const std::function<void()>& enqueue);

 private:
  Device* device_;
  double delay_seconds_ = 100e-6;  ///< of the next hold; a launch takes the host 3 to 10 us
};

}  // namespace lamina
