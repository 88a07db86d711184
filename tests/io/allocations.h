#pragma once
// The largest request to operator new in this program.

#include <atomic>
#include <cstddef>

namespace lamina::test {

/// The largest block that was requested since this number was last set to 0, in bytes.
extern std::atomic<std::size_t> largest_allocation_bytes;

}  // namespace lamina::test
