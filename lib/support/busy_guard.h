#pragma once
// One caller at a time: what two would spoil for each other is refused to the second.

#include <atomic>
#include <string>

#include "lamina/error.h"

namespace lamina {

/// Holds something for one caller. Throws UsageError while another holds it: another thread, or an outer call.
class BusyGuard {
 public:
  BusyGuard(std::atomic<bool>& taken, const char* what_to_do) : taken_(taken) {
    if (taken_.exchange(true, std::memory_order_acquire))
      throw UsageError(std::string("two callers at once: ") + what_to_do);
  }
  ~BusyGuard() { taken_.store(false, std::memory_order_release); }
  BusyGuard(const BusyGuard&) = delete;  // two would both give it back
  BusyGuard& operator=(const BusyGuard&) = delete;

 private:
  std::atomic<bool>& taken_;
};

}  // namespace lamina
