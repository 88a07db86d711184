// Replaces malloc and related functions in the whole program: each counts the call and calls the C library's function.
// Sanitizers bring their own malloc, so this counter does not work with them.

#include "counter.h"

namespace lamina::test {
std::atomic<std::size_t> allocations{0};
}

// NOLINTBEGIN(bugprone-reserved-identifier,readability-inconsistent-declaration-parameter-name): the C library's names
extern "C" {

// The C library exports its own functions under these names too, for programs that replace malloc.
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* data, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) noexcept {
  ++lamina::test::allocations;
  return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ++lamina::test::allocations;
  return __libc_calloc(count, bytes);
}

void* realloc(void* data, std::size_t bytes) noexcept {
  ++lamina::test::allocations;
  return __libc_realloc(data, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  ++lamina::test::allocations;
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** data, std::size_t alignment, std::size_t bytes) noexcept {
  ++lamina::test::allocations;
  *data = __libc_memalign(alignment, bytes);
  return *data == nullptr ? ENOMEM : 0;
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-inconsistent-declaration-parameter-name)
