#pragma once
// One caller at a time: a second caller is refused.

#include <atomic>
#include <string>

#include "lamina/error.h"

namespace lamina {

/// Marks something as busy for one caller. Throws UsageError if it is busy already, in another thread or in an outer
/// call.
class BusyGuard {
 public:
  BusyGuard(std::atomic<bool>& taken, const char* what_to_do) : taken_(taken) {
    if (taken_.exchange(true, std::memory_order_acquire))
      throw UsageError(std::string("two callers at once: ") + what_to_do);
  }
  ~BusyGuard() { taken_.store(false, std::memory_order_release); }
  BusyGuard(const BusyGuard&) = delete;  // a copy would release it twice
  BusyGuard& operator=(const BusyGuard&) = delete;

 private:
  std::atomic<bool>& taken_;
};

}  // namespace lamina
