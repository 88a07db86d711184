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

/// A tensor between two walls; the gaps of its pitch belong to the walls. Walls and inside all start as distinct NaNs
/// (in every float type).
class GuardedTensor {
 public:
  /// `like` gives shape, type, layout and pitch; `offset` is in elements.
  GuardedTensor(Device&, const Tensor& like, std::uint64_t salt, int offset);

  Tensor tensor() const;
  void set(const Values&);
  void poison() { write(pattern_); }  ///< sets everything to NaN again
  Values get() const;

  /// Empty, or which byte outside the elements was written.
  std::string damage() const;
  /// Whether no bit has changed since `set` or `poison`.
  bool untouched() const { return now() == last_set_; }

 private:
  std::size_t address(std::int64_t element) const;
  std::vector<unsigned char> now() const;  ///< all bytes, walls included
  void write(const std::vector<unsigned char>& whole);

  Device& device_;
  Tensor like_;
  std::size_t first_;                              // start of the elements
  std::vector<unsigned char> pattern_, last_set_;  // all bytes: the initial ones, and those of the last write()
  Buffer buffer_;
};

}  // namespace lamina::test
