#pragma once
// Device memory between walls. A test lends it to a kernel and checks afterwards that no byte outside its elements was
// written. Everything that was not set is NaN, so that a read of it shows in the results.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lamina/device.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

/// A block between two walls, of any size. The host writes and reads only the walls. The inside is NaN (in every float
/// type).
class GuardedBlock {
 public:
  GuardedBlock(Device&, std::size_t bytes, std::uint64_t salt);

  void* data() const;  ///< null for zero bytes
  /// Empty, or which byte of the walls was written.
  std::string damage() const;

 private:
  Device& device_;
  std::size_t bytes_;
  std::vector<unsigned char> walls_;  // content of the first wall, then of the second
  Buffer buffer_;
};

/// Bytes between two walls. Walls and inside all start as distinct NaNs (in every float type).
class GuardedBytes {
 public:
  GuardedBytes(Device&, std::size_t bytes, std::uint64_t salt, std::size_t offset_bytes = 0);

  void* data() const { return static_cast<unsigned char*>(buffer_.data()) + first_; }
  void poison();  ///< sets everything to NaN again

  /// All bytes, walls included: the present ones and the initial ones.
  std::vector<unsigned char> now() const;
  const std::vector<unsigned char>& pattern() const { return pattern_; }
  std::size_t first() const { return first_; }  ///< start of the inside in these two
  void write(const std::vector<unsigned char>& whole);

 private:
  Device& device_;
  std::size_t first_;
  std::vector<unsigned char> pattern_;
  Buffer buffer_;
};

/// A tensor between two walls; the gaps of its pitch belong to the walls.
class GuardedTensor {
 public:
  /// `like` gives shape, type, layout and pitch; `offset` is in elements.
  GuardedTensor(Device&, const Tensor& like, std::uint64_t salt, int offset);

  Tensor tensor() const;
  void set(const Values&);
  void poison();
  Values get() const;

  /// Empty, or which byte outside the elements was written.
  std::string damage() const;
  /// Whether no bit has changed since `set` or `poison`.
  bool untouched() const { return bytes_.now() == last_set_; }

 private:
  std::size_t address(std::int64_t element) const;
  Tensor like_;
  GuardedBytes bytes_;
  std::vector<unsigned char> last_set_;
};

}  // namespace lamina::test
