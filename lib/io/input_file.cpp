// Opening and reading a file, with a message for each kind of failure.

#include "input_file.h"

#include <system_error>

#include "lamina/error.h"

namespace lamina {

namespace fs = std::filesystem;

InputFile::InputFile(const fs::path& path) : name_(path.string()) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw FileError(name_ + ": no such file");
  if (error) throw FileError(name_ + ": " + error.message());
  if (!fs::is_regular_file(status)) throw FileError(name_ + ": not a regular file");
  bytes_ = fs::file_size(path, error);
  if (error) throw FileError(name_ + ": " + error.message());
  stream_.open(path, std::ios::binary);
  if (!stream_) throw FileError(name_ + ": cannot be opened for reading");
}

void InputFile::read(std::span<std::byte> to) {
  stream_.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
  if (!stream_) throw FileError(name_ + ": could not be read to its end");
}

void InputFile::skip(std::uint64_t bytes) { stream_.seekg(static_cast<std::streamoff>(bytes), std::ios::cur); }

}  // namespace lamina
