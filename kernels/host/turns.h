#pragma once
// The order in which the blocks of a grid and the threads of a block take turns.

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "grid.h"

namespace lamina::cuda_host::host {

struct Turns {
  Order order = Order::ascending;
  std::uint64_t seed = 0;
};

/// The value of LAMINA_THREAD_ORDER; null and empty are ascending. Throws LaunchError.
Turns turns_of(const char* text);

/// The threads, or blocks, [first, first + count), in the order of their turns.
std::vector<std::size_t> in_turns(Order, std::size_t first, std::size_t count, std::mt19937_64&);

}  // namespace lamina::cuda_host::host
