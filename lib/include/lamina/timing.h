#pragma once
// Help for timing work on a device: warming up until the clock settles, and times without the host's launches.

#include <cstddef>
#include <functional>

#include "lamina/api.h"
#include "lamina/device.h"

namespace lamina {

/// Twice the bytes of a GPU's largest cache: a write of this size empties the cache.
constexpr std::size_t twice_a_cache = std::size_t{256} << 20;

/// Repeats `work`, which enqueues, until the device has worked for 50 ms and two consecutive batches of about 10 ms
/// agree within 2 % in the time of a run and in the clock that the device reports; at most for about a second.
/// Does nothing on a device without a queue: a processor's caches and threads are warm after one pass.
LAMINA_API void warm_up(Device&, const std::function<void()>& work);

/// Times work without the time of the host's launches. An idle device reaches the first mark before the host has
/// enqueued the work, so the time between the marks would include the launches. Therefore the queue is held first, for
/// about twice the host's time in the last call. Afterwards it is checked that this was long enough.
class LAMINA_API HeldLaunches {
 public:
  explicit HeldLaunches(Device& device) : device_(&device) {}

  /// Calls enqueue() while the queue is held; enqueue() marks the start of `first`, then enqueues work and marks. If
  /// the queue reaches the first mark before all is enqueued, enqueue() is called again after a longer delay, up to the
  /// device's longest. Returns whether the launches were hidden in the last call. It is false on a device without a
  /// queue, and if the longest delay was too short, as for work that waits for the device.
  bool run(Timer& first, const std::function<void()>& enqueue);

 private:
  Device* device_;
  double delay_seconds_ = 100e-6;  ///< length of the next hold; a launch takes the host 3 to 10 us
};

}  // namespace lamina
