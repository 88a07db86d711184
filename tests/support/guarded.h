#pragma once
// Device memory between guard regions (walls). A test lends it to a kernel and then checks that no byte outside the
// elements was written. Unset memory is NaN, so that a read of it makes results NaN.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lamina/device.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

/// A block of any size between two walls. The host writes and reads only the walls. The inside is NaN in every float
/// type.
class GuardedBlock {
 public:
  GuardedBlock(Device&, std::size_t bytes, std::uint64_t salt);

  void* data() const;  ///< null for zero bytes
  /// Empty, or a text about the first changed byte of the walls.
  std::string damage() const;

 private:
  Device& device_;
  std::size_t bytes_;
  std::vector<unsigned char> walls_;  // contents of the first wall, then of the second
  Buffer buffer_;
};

/// A tensor between two walls. The gaps of its pitch belong to the walls. At first all memory is distinct NaNs in every
/// float type.
class GuardedTensor {
 public:
  /// `like` gives shape, type, layout and pitch; `offset` is in elements.
  GuardedTensor(Device&, const Tensor& like, std::uint64_t salt, int offset);

  Tensor tensor() const;
  void set(const Values&);
  void poison() { write(pattern_); }  ///< sets everything to NaN again
  Values get() const;

  /// Empty, or a text about the first changed byte outside the elements.
  std::string damage() const;
  /// Whether no bit has changed since the last `set` or `poison`.
  bool untouched() const { return now() == last_set_; }

 private:
  std::size_t address(std::int64_t element) const;
  std::vector<unsigned char> now() const;  ///< all bytes, walls included
  void write(const std::vector<unsigned char>& whole);

  Device& device_;
  Tensor like_;
  std::size_t first_;                              // start of the elements
  std::vector<unsigned char> pattern_, last_set_;  // all bytes: initial, and after the last write()
  Buffer buffer_;
};

}  // namespace lamina::test
