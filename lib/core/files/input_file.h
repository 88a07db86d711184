#pragma once
// A file open for reading, of a known length. Every failure is a FileError that names it.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace lamina {

class InputFile {
 public:
  /// Takes regular files only, because a pipe could wait for a writer. Refuses a Git LFS pointer and a page of HTML or
  /// XML, which a failed download may leave, with a message that says so.
  explicit InputFile(const std::filesystem::path&);

  const std::string& name() const { return name_; }
  std::uint64_t bytes() const { return bytes_; }
  std::string_view start() const { return start_; }  ///< first 256 bytes, or all of a shorter file

  void read(std::span<std::byte> to);
  void skip(std::uint64_t bytes);

 private:
  void refuse_stand_in() const;

  std::string name_, start_;
  std::uint64_t bytes_ = 0;
  std::ifstream stream_;
};

}  // namespace lamina
