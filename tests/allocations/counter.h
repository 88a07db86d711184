#pragma once
// The number of this program's memory requests, of any kind.

#include <atomic>
#include <cstddef>

namespace lamina::test {
extern std::atomic<std::size_t> allocations;
}
