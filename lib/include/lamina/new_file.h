#pragma once
// A file that appears whole or not at all: it is written beside its target, then renamed.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "lamina/api.h"

namespace lamina {

/// An old file stays as it is until keep() replaces it. Every function throws FileError, naming the file. If the target
/// is a symbolic link, the link stays and the file that it points to is replaced. An old file's permissions are kept.
/// The destructor removes the temporary file; the next writer removes files that a killed process left.
class LAMINA_API NewFile {
 public:
  /// What happens to a target that is a pipe or a device: it is refused, or written in place.
  enum class Special { refused, written };
  explicit NewFile(const std::filesystem::path& path, Special = Special::refused);
  ~NewFile();
  NewFile(const NewFile&) = delete;  // one owner of the descriptor and of the temporary name
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void keep();  ///< waits until the bytes are on the disk, then replaces the old file

 private:
  void remove_left_behind() const;
  std::filesystem::path folder() const;
  [[noreturn]] void fail(const char* what, int error) const;

  std::string name_;
  std::filesystem::path target_, neighbour_;  ///< neighbour_ is the temporary file; empty: target_ is written in place
  int descriptor_ = -1;
};

}  // namespace lamina
