#pragma once
// The host as a device: its memory is the process's, and its queue is the calling thread.

#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "lamina/device.h"

namespace lamina {

std::string processor_name();  ///< name as the system reports it: "AMD EPYC ..."

std::unique_ptr<Timer> host_timer();  ///< timer of the calling thread, by the steady clock

/// Work runs when it is enqueued, so nothing ever waits.
class HostDevice final : public Device {
 public:
  /// `threads` appears in describe(); `memory_limit` bounds the sum of all live blocks, in bytes.
  explicit HostDevice(int threads, std::size_t memory_limit = std::numeric_limits<std::size_t>::max());
  HostDevice(const HostDevice&) = delete;  // owners of its blocks hold its address
  HostDevice& operator=(const HostDevice&) = delete;

  std::string describe() override;  ///< "AMD EPYC, 2 threads"

  /// Blocks of 4 MiB and more are aligned to 2 MiB and request huge pages.
  /// Throws OutOfMemory beyond the limit, and for a block larger than the system reports as available.
  void* allocate(std::size_t bytes) override;
  void release(void* data) noexcept override;

  void upload(void* to, const void* from_host, std::size_t bytes) override;
  void download(void* to_host, const void* from, std::size_t bytes) override { upload(to_host, from, bytes); }
  void fill(void* to, unsigned char byte, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override { upload(to, from, bytes); }
  void synchronize() override {}
  std::unique_ptr<Timer> timer() override;
  bool has_host_memory() const override { return true; }

 private:
  struct Block {
    std::size_t bytes, alignment;
  };
  int threads_;
  std::size_t memory_limit_;
  std::size_t used_bytes_ = 0;
  std::unordered_map<void*, Block> blocks_;
  std::mutex mutex_;
};

}  // namespace lamina
