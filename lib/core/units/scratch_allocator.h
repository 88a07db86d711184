#pragma once
// Parts of one block of memory, allocated from its start.

#include <cstddef>
#include <cstdint>

#include "lib/core/numbers/rounding.h"

namespace lamina {

/// Allocates consecutive parts of one block of memory. Each part is aligned to `alignment` bytes if the block is.
/// Without memory it only counts.
class ScratchAllocator {
 public:
  explicit ScratchAllocator(void* memory = nullptr, std::size_t alignment = 64)
      : base_(static_cast<std::byte*>(memory)), alignment_(alignment) {}
  template <class T>
  T* take(std::int64_t count) {
    T* const at = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += aligned(static_cast<std::size_t>(count) * sizeof(T), alignment_);
    return at;
  }
  std::size_t used_bytes() const { return used_; }

  /// Part `number` of the memory that is not taken yet, cut into parts of `bytes` each.
  ScratchAllocator part(int number, std::size_t bytes) const {
    return ScratchAllocator(base_ + used_ + static_cast<std::size_t>(number) * bytes, alignment_);
  }

 private:
  std::byte* base_;
  std::size_t alignment_;
  std::size_t used_ = 0;
};

/// The bytes that allocate(ScratchAllocator&) takes.
template <class Allocate>
std::size_t allocated_bytes(const Allocate& allocate, std::size_t alignment = 64) {
  ScratchAllocator counter(nullptr, alignment);
  allocate(counter);
  return counter.used_bytes();
}

}  // namespace lamina
