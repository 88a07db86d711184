#pragma once
// How often this program has asked for memory, in any way.

#include <atomic>
#include <cstddef>

namespace lamina::test {
extern std::atomic<std::size_t> allocations;
}
