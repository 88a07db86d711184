#pragma once
// The order in which the blocks of a grid and the threads of a block take their turns.

#include <cstdint>

#include "grid.h"

namespace lamina::cuda_host::host {

struct Turns {
  Order order = Order::ascending;
  std::uint64_t seed = 0;
};

/// What LAMINA_THREAD_ORDER says; null and empty are ascending. Throws LaunchError.
Turns turns_of(const char* text);

}  // namespace lamina::cuda_host::host
