// Opening and reading a file, with a message for each kind of failure.

#include "input_file.h"

#include <algorithm>
#include <cstdlib>
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
  stream_.open(path, std::ios::binary | std::ios::ate);
  if (!stream_) throw FileError(name_ + ": cannot be opened for reading");
  bytes_ = static_cast<std::uint64_t>(stream_.tellg());  // length of the open file: another file may get its name
  stream_.seekg(0);
  start_.resize(static_cast<std::size_t>(std::min<std::uintmax_t>(bytes_, 256)));
  read(std::as_writable_bytes(std::span(start_)));
  refuse_stand_in();
  stream_.seekg(0);
}

/// Refuses a file that a failed download may leave in place of the right one, by its first bytes.
void InputFile::refuse_stand_in() const {
  std::string start = start_;
  if (start.starts_with("version https://git-lfs.github.com/spec/")) {
    const std::size_t size = start.find("\nsize ");
    throw FileError(name_ + ": a Git LFS pointer in place of the file" +
                    (size == start.npos ? "" : " of " + std::to_string(std::atoll(&start[size + 6])) + " bytes") +
                    ": git lfs pull fetches the file");
  }
  start.erase(0, start.find_first_not_of("\xef\xbb\xbf \t\r\n"));
  std::ranges::transform(start, start.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const char* page : {"<!doctype html", "<html", "<?xml"})
    if (start.starts_with(page))
      throw FileError(name_ + ": a page of HTML or XML in place of the file: look at it, and fetch the file again");
}

void InputFile::read(std::span<std::byte> to) {
  stream_.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
  if (!stream_) throw FileError(name_ + ": could not be read to its end");
}

void InputFile::skip(std::uint64_t bytes) { stream_.seekg(static_cast<std::streamoff>(bytes), std::ios::cur); }

}  // namespace lamina
