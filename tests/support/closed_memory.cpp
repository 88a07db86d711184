// A device whose memory the host cannot access.

#include "tests/support/closed_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "kernels/host/device_memory.h"
#include "lamina/error.h"
#include "lib/core/device/host/host_device.h"

namespace lamina::test {
namespace {

using cuda_host::host::OpenMemory;

constexpr std::size_t room_bytes = std::size_t{16} << 30;  // range of addresses; only written pages use memory
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t alignment = 256;
constexpr std::size_t most_filled_bytes = std::size_t{16} << 20;  // opening takes time for each used page

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// The address range of all closed devices.
class Room final : public cuda_host::host::MemoryGate {
 public:
  Room() {
    void* const base = mmap(nullptr, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) throw std::runtime_error("no addresses for closed memory");
    base_ = static_cast<unsigned char*>(base);
    cuda_host::host::set_memory_gate(this);
  }

  void open() override {
    const std::lock_guard lock(mutex_);
    opened_ = taken_.empty() ? 0 : rounded(taken_.rbegin()->first + taken_.rbegin()->second, page_bytes);
    if (mprotect(base_, opened_, PROT_READ | PROT_WRITE) != 0) throw std::runtime_error("closed memory does not open");
  }
  void close() noexcept override { (void)mprotect(base_, opened_, PROT_NONE); }

  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t needed = rounded(std::min(bytes, room_bytes), alignment);
    std::size_t at = 0;
    for (const auto& [offset, size] : taken_) {  // first gap that is large enough
      if (offset - at >= needed) break;
      at = offset + size;
    }
    if (bytes > room_bytes - at) throw OutOfMemory(bytes, room_bytes - at);
    taken_.emplace(at, needed);
    return base_ + at;
  }

  void give_back(const void* data) noexcept {
    const std::lock_guard lock(mutex_);
    taken_.erase(static_cast<std::size_t>(static_cast<const unsigned char*>(data) - base_));
  }

 private:
  unsigned char* base_ = nullptr;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> taken_;  ///< taken blocks: offset to bytes
  std::size_t opened_ = 0;
};

Room& room() {
  static Room* const one = new Room;  // backends live until the process ends
  return *one;
}

class ClosedStaging final : public Staging {
 public:
  ClosedStaging(Device& device, std::size_t bytes) : device_(&device), bytes_(bytes, 0xff) {}
  void* data() override { return bytes_.data(); }
  void upload(void* to, std::size_t first, std::size_t bytes) override {
    device_->upload(to, bytes_.data() + first, bytes);
    std::fill_n(bytes_.data() + first, bytes, static_cast<unsigned char>(0xff));
  }

 private:
  Device* device_;
  std::vector<unsigned char> bytes_;
};

}  // namespace

void* ClosedDevice::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* const data = room().take(bytes);
  if (bytes <= most_filled_bytes) fill(data, 0xff, bytes);
  return data;
}

void ClosedDevice::release(void* data) noexcept {
  if (data != nullptr) room().give_back(data);
}

void ClosedDevice::upload(void* to, const void* from_host, std::size_t bytes) {
  const OpenMemory open;
  if (bytes > 0) std::memcpy(to, from_host, bytes);
}

void ClosedDevice::download(void* to_host, const void* from, std::size_t bytes) {
  const OpenMemory open;
  if (bytes > 0) std::memcpy(to_host, from, bytes);
}

void ClosedDevice::fill(void* to, unsigned char byte, std::size_t bytes) {
  const OpenMemory open;
  if (bytes > 0) std::memset(to, byte, bytes);
}

std::unique_ptr<Timer> ClosedDevice::timer() { return host_timer(); }

std::unique_ptr<Staging> ClosedDevice::staging(std::size_t bytes) {
  return std::make_unique<ClosedStaging>(*this, bytes);
}

ClosedBackend::ClosedBackend(const std::shared_ptr<Backend>& inner)
    : WrappedBackend(*inner), inner_(inner), device_(inner_->device().describe()) {}

}  // namespace lamina::test
