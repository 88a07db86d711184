// operator new for the whole program, which records the requests. It is in a separate file, because compilers warn if
// it is inlined.

#include "allocations.h"

#include <cstdlib>
#include <new>

namespace lamina::test {
std::atomic<std::size_t> largest_allocation_bytes{0};
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  std::atomic<std::size_t>& largest = lamina::test::largest_allocation_bytes;
  std::size_t seen = largest;
  while (bytes > seen && !largest.compare_exchange_weak(seen, bytes)) {
  }
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* operator new(std::size_t bytes) {
  if (void* const data = operator new(bytes, std::nothrow)) return data;
  throw std::bad_alloc();
}

void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
