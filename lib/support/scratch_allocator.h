#pragma once
// Parts of one block of memory, allocated from its start.

#include <cstddef>
#include <cstdint>

namespace lamina {

/// Allocates consecutive parts of one block of memory, each aligned to 64 bytes if the block is. Without memory it only
/// counts.
class ScratchAllocator {
 public:
  explicit ScratchAllocator(void* memory = nullptr) : base_(static_cast<std::byte*>(memory)) {}
  template <class T>
  T* take(std::int64_t count) {
    T* const at = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return at;
  }
  std::size_t used_bytes() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

}  // namespace lamina
