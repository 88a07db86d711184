#pragma once
// The number of this program's calls of malloc and related functions.

#include <atomic>
#include <cstddef>

namespace lamina::test {
extern std::atomic<std::size_t> allocations;
}
