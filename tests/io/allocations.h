#pragma once
// The heap requests of this binary.

#include <atomic>
#include <cstddef>

namespace lamina::test {

/// The largest block requested from operator new since this was last set to zero.
extern std::atomic<std::size_t> largest_allocation_bytes;

}  // namespace lamina::test
