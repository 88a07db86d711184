#pragma once
// The bytes of a file in order. A gzip stream is unpacked.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/core/files/input_file.h"
#include "lib/core/numbers/elements.h"

namespace lamina {

/// Every failure is a FileError that names the file. Memory is in proportion to the file: a gzip stream may give
/// `most_expansion` times its bytes, or `least_limit_bytes` if that is more.
class ByteSource {
 public:
  static constexpr std::uint64_t most_expansion = 100;  // MNIST's images are packed 5 to 1, text 3 to 1
  static constexpr std::uint64_t least_limit_bytes = std::uint64_t{1} << 20;

  explicit ByteSource(const std::filesystem::path&);
  ~ByteSource();

  /// Fills `to`. `what` names the bytes in the error of a file that ends too early.
  void read(std::span<std::uint8_t> to, const char* what);
  /// Reads a number in the given byte order.
  template <class Number>
  Number read_number(const char* what, std::endian order = std::endian::little) {
    std::array<std::uint8_t, sizeof(Number)> bytes;
    read(bytes, what);
    if (order == std::endian::big) std::ranges::reverse(bytes);
    return from_little_endian<Number>(std::as_bytes(std::span(bytes)).data());
  }

  /// The next `count` bytes. A count that the file cannot have is refused before memory is taken for it.
  std::vector<std::uint8_t> take(std::uint64_t count, const char* what);
  std::vector<std::uint8_t> rest();  ///< all remaining bytes
  void finish();                     ///< throws unless all bytes were read; checks a gzip stream's checksum

  [[noreturn]] void fail(const std::string& what) const;

 private:
  struct Gzip;
  std::size_t some(std::span<std::uint8_t> to);  // gives fewer than to.size() bytes only at the end
  std::size_t some_unpacked(std::span<std::uint8_t> to);
  std::size_t some_of_file(std::span<std::uint8_t> to);
  std::uint64_t left() const;  // upper bound on the bytes that are left

  InputFile file_;
  std::uint64_t unread_ = 0;    // bytes of the file that were not read yet
  std::uint64_t given_ = 0;     // bytes given to the caller
  std::uint64_t limit_ = 0;     // limit of given_
  std::unique_ptr<Gzip> gzip_;  // null: the file's bytes are the data
};

}  // namespace lamina
