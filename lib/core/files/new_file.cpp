// Replacing a file atomically, by POSIX calls: a stream can neither wait for the disk nor report what failed.

#include "lamina/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "lamina/error.h"

namespace lamina {

namespace fs = std::filesystem;

namespace {

constexpr const char* neighbours = ".new-";

/// Locks a new temporary file for as long as its descriptor is open, and says whether the file still has its name.
/// On a file system without locks, no process removes the files that others left.
bool is_ours(int descriptor) {
  (void)::flock(descriptor, LOCK_EX);
  struct stat now {};
  return ::fstat(descriptor, &now) == 0 && now.st_nlink > 0;
}

/// Whether `end` has the form that a writer gives to the end of its temporary names: "<process>-<count>". A user's
/// "file.new-plan" has no such end.
bool is_numbered(std::string_view end) {
  const auto minus = end.find('-');
  const auto is_number = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  return minus != end.npos && is_number(end.substr(0, minus)) && is_number(end.substr(minus + 1));
}

}  // namespace

NewFile::NewFile(const fs::path& path, Special special) : name_(path.string()), target_(path) {
  std::error_code error;
  const fs::file_status old = fs::status(path, error);
  if (special == Special::written && fs::is_other(old)) {
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail("cannot be written", errno);
    return;
  }
  if (fs::exists(old)) {
    if (!fs::is_regular_file(old)) throw FileError(name_ + ": not a regular file, so it is not replaced");
    target_ = fs::canonical(path, error);
    if (error) throw FileError(name_ + ": " + error.message());
  }
  remove_left_behind();
  static std::atomic<unsigned> count{0};
  for (int tries = 0; tries < 100 && descriptor_ < 0; ++tries) {
    neighbour_ = target_;
    neighbour_ += neighbours + std::to_string(::getpid()) + "-" + std::to_string(count++);
    descriptor_ = ::open(neighbour_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) break;
    if (descriptor_ >= 0 && !is_ours(descriptor_)) {  // another process removed it before it was locked
      ::close(descriptor_);
      descriptor_ = -1;
    }
  }
  if (descriptor_ < 0) fail("cannot be written: no file could be made in its folder", errno);
  if (fs::exists(old)) ::fchmod(descriptor_, static_cast<mode_t>(old.permissions() & fs::perms::mask));
}

NewFile::~NewFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!neighbour_.empty()) ::unlink(neighbour_.c_str());
}

void NewFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("could not be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void NewFile::keep() {
  const bool in_place = neighbour_.empty();
  // A pipe or a device may have nothing to write to a disk.
  if (::fsync(descriptor_) != 0 && !(in_place && errno == EINVAL)) fail("could not be written", errno);
  if (in_place) return;
  if (::rename(neighbour_.c_str(), target_.c_str()) != 0) fail("could not be replaced", errno);
  neighbour_.clear();
  ::close(descriptor_);  // only now: the lock keeps others from removing the temporary file
  descriptor_ = -1;
  // The rename is done, so an error of the folder's sync is ignored: some file systems do not support it.
  const int folder_descriptor = ::open(folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_descriptor >= 0) {
    ::fsync(folder_descriptor);
    ::close(folder_descriptor);
  }
}

/// Removes files of processes that ended while they wrote. Nobody holds a lock on these files.
void NewFile::remove_left_behind() const {
  const std::string prefix = target_.filename().string() + neighbours;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !is_numbered(std::string_view(name).substr(prefix.size()))) continue;
    const int left = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (left < 0) continue;
    if (::flock(left, LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
    ::close(left);
  }
}

fs::path NewFile::folder() const { return target_.has_parent_path() ? target_.parent_path() : fs::path("."); }

void NewFile::fail(const char* what, int error) const {
  std::string advice = "give another file, or the right to write";
  if (error == ENOSPC) advice = "make room on the disk";
  std::error_code ignored;
  if (error == ENOENT && !fs::is_directory(folder(), ignored))
    advice = "make the folder " + folder().string() + " first, or give another file";
  throw FileError(name_ + ": " + what + ": " + std::generic_category().message(error) + "; " + advice);
}

}  // namespace lamina
