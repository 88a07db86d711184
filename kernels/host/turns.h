#pragma once
// The order in which the blocks of a grid and the threads of a block take turns.

#include <cstdint>

#include "grid.h"

namespace lamina::cuda_host::host {

struct Turns {
  Order order = Order::ascending;
  std::uint64_t seed = 0;
};

/// The value of LAMINA_THREAD_ORDER; null and empty are ascending. Throws LaunchError.
Turns turns_of(const char* text);

}  // namespace lamina::cuda_host::host
