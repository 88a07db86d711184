#pragma once
// What this binary asks of the heap.

#include <atomic>
#include <cstddef>

namespace lamina::test {

/// The largest block that operator new was asked for since this was last set to zero.
extern std::atomic<std::size_t> largest_allocation_bytes;

}  // namespace lamina::test
