// The rows as a JSON file, whole at every moment.

#include "result_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  const char* advice = error == ENOSPC ? "make room on the disk" : "give another file or folder, or the right to write";
  throw FileError(fmt::format("cannot write {}: {}; {}", path.string(), std::strerror(error), advice));
}

bool write_all(int file, std::string_view rest) {
  while (!rest.empty()) {
    const ssize_t written = ::write(file, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(file) == 0 || errno == EINVAL;  // a pipe or a device has nothing to sync
}

}  // namespace

void replace_file(const std::filesystem::path& path, const std::string& contents) {
  std::error_code not_there;
  const auto status = std::filesystem::status(path, not_there);
  const bool special = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  const std::filesystem::path target = special ? path : std::filesystem::path(path.string() + ".part");
  const int file = ::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) fail(path, errno);
  const bool written = write_all(file, contents);
  const int error = errno;
  ::close(file);
  if (written && (special || std::rename(target.c_str(), path.c_str()) == 0)) return;
  const int reason = written ? errno : error;
  if (!special) ::unlink(target.c_str());
  fail(path, reason);
}

void check_writable(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  if (!folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) fail(folder, error.value());
  }
  const std::filesystem::path probe = file.string() + ".part";
  if (std::filesystem::is_directory(file)) fail(file, EISDIR);
  if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) return;
  replace_file(probe, "{}\n");
  ::unlink(probe.c_str());
}

void ResultFile::save() const {
  if (!path_.empty()) replace_file(path_, document.dump(2) + "\n");
}

void ResultFile::save_now_and_then() {
  const auto now = std::chrono::steady_clock::now();
  if (path_.empty() || now - saved_ < std::chrono::seconds(1)) return;
  try {
    save();
    saved_ = std::chrono::steady_clock::now();
  } catch (const FileError& error) {
    if (!complained_) fmt::print(stderr, "lamina_bench: {}; going on, and trying again\n", error.what());
    complained_ = true;
  }
}

}  // namespace lamina::bench
