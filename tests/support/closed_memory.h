#pragma once
// A device whose memory the host cannot access, as on a GPU. An access ends the process with a fault. Kernels on the
// host, and substitutes for libraries, open the memory while they run.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "lamina/device.h"
#include "tests/support/wrapped_backend.h"

namespace lamina::test {

/// A device whose memory the host accesses only through upload, download and fill. New blocks of up to 16 MiB are full
/// of 0xff, which is NaN in every float type. All closed devices share one address range, which kernels open as a
/// whole.
class ClosedDevice final : public Device {
 public:
  explicit ClosedDevice(std::string description) : description_(std::move(description)) {}

  std::string describe() override { return description_; }
  void* allocate(std::size_t bytes) override;
  void release(void* data) noexcept override;
  void upload(void* to, const void* from_host, std::size_t bytes) override;
  void download(void* to_host, const void* from, std::size_t bytes) override;
  void fill(void* to, unsigned char byte, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override { download(to, from, bytes); }
  void synchronize() override {}
  std::unique_ptr<Timer> timer() override;
  /// Staging memory. Its bytes become NaN after an upload, so an upload without new data gives NaN.
  std::unique_ptr<Staging> staging(std::size_t bytes) override;

 private:
  std::string description_;
};

/// Moves a backend to a closed device. The backend's kernels must run on the host and need no device of their own.
class ClosedBackend final : public WrappedBackend {
 public:
  explicit ClosedBackend(const std::shared_ptr<Backend>& inner);
  std::string describe() override { return inner_->describe() + ", memory closed to the host"; }
  Device& device() override { return device_; }

 private:
  std::shared_ptr<Backend> inner_;
  ClosedDevice device_;
};

}  // namespace lamina::test
