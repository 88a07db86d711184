// Memory and time of the host.

#include "host_device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "lamina/error.h"
#include "lib/core/numbers/rounding.h"
#include "lib/core/system/address_limit.h"

namespace lamina {
namespace {

constexpr std::size_t small_alignment = 256;
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr std::size_t large_block_bytes = std::size_t{4} << 20;

/// Memory that the system can give without swapping; the largest number if it does not say.
std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::size_t kibibytes = 0;
    if (word == "MemAvailable:" && file >> kibibytes) return kibibytes << 10;
  }
  return std::numeric_limits<std::size_t>::max();
}

class HostTimer final : public Timer {
 public:
  void start() override { start_ = Clock::now(); }
  void stop() override { stop_ = Clock::now(); }
  double seconds() override { return std::chrono::duration<double>(stop_ - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_, stop_;
};

}  // namespace

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

HostDevice::HostDevice(int threads, std::size_t memory_limit) : threads_(threads), memory_limit_(memory_limit) {}

std::string HostDevice::describe() {
  return processor_name() + ", " + std::to_string(threads_) + (threads_ == 1 ? " thread" : " threads");
}

void* HostDevice::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const bool large = bytes >= large_block_bytes;
  const std::size_t within_limit = memory_limit_ - std::min(memory_limit_, used_bytes_);
  if (bytes > within_limit) throw OutOfMemory(bytes, within_limit);
  // The system overcommits memory, and later kills the process that touches it.
  const std::size_t available = large ? available_bytes() : std::numeric_limits<std::size_t>::max();
  if (bytes > available) throw OutOfMemory(bytes, std::min(available, within_limit));

  const std::size_t alignment = large ? huge_page_bytes : small_alignment;
  if (bytes > std::numeric_limits<std::size_t>::max() - alignment) throw OutOfMemory(bytes, within_limit);
  const std::size_t rounded = aligned(bytes, alignment);
  void* const data = ::operator new (rounded, std::align_val_t{alignment}, std::nothrow);
  if (data == nullptr) throw OutOfMemory(bytes, std::min(available, within_limit), address_limit());
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (large) (void)madvise(data, rounded, MADV_HUGEPAGE);  // a hint: correct without it
#endif
  try {
    blocks_.emplace(data, Block{bytes, alignment});
  } catch (...) {
    ::operator delete (data, std::align_val_t{alignment});
    throw;
  }
  used_bytes_ += bytes;
  return data;
}

void HostDevice::release(void* data) noexcept {
  if (data == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(data);
  if (block == blocks_.end()) return;
  used_bytes_ -= block->second.bytes;
  ::operator delete (data, std::align_val_t{block->second.alignment});
  blocks_.erase(block);
}

void HostDevice::upload(void* to, const void* from_host, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from_host, bytes);
}

void HostDevice::fill(void* to, unsigned char byte, std::size_t bytes) {
  if (bytes > 0) std::memset(to, byte, bytes);
}

std::unique_ptr<Timer> host_timer() { return std::make_unique<HostTimer>(); }

std::unique_ptr<Timer> HostDevice::timer() { return host_timer(); }

}  // namespace lamina
