#pragma once
// A GPU as a device: its memory, one stream, its clock. This header needs no header of CUDA.

#include <cstddef>
#include <limits>
#include <memory>
#include <string>

#include "lamina/device.h"

struct CUstream_st;

namespace lamina {

/// Empty, or one line on why this machine has no CUDA device of this number and what to do. Never throws.
std::string cuda_unavailable(int number = 0);

/// Opens its GPU at the first call that needs one. That call throws DeviceError if there is no GPU, UsageError for a
/// number that is too high. Any thread may use it, one at a time.
class CudaDevice final : public Device {
 public:
  /// `memory_limit` bounds the sum of all live blocks, in bytes.
  explicit CudaDevice(int number = 0, std::size_t memory_limit = std::numeric_limits<std::size_t>::max());
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;  // owners of its blocks hold its address
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::string describe() override;  ///< "NVIDIA H200, sm_90, 143156 MiB, driver ..."

  void* allocate(std::size_t bytes) override;
  void release(void* data) noexcept override;
  void upload(void* to, const void* from_host, std::size_t bytes) override;
  void download(void* to_host, const void* from, std::size_t bytes) override;
  void fill(void* to, unsigned char byte, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void synchronize() override;
  std::unique_ptr<Timer> timer() override;
  std::unique_ptr<Staging> staging(std::size_t bytes) override;  ///< throws DeviceError if no memory can be locked

  std::unique_ptr<SideQueue> side_queue() override;

  double longest_hold() const override;
  /// Runs a thread that polls the clock of its multiprocessor. The thread waits for a number of cycles at the clock's
  /// highest rate, so a hold takes longer at a lower rate.
  void hold(double seconds) override;
  DeviceState state() override;  ///< readings from NVIDIA's management library, which the first call opens

  /// Records a CUDA graph. Throws DeviceError if `work` does something that cannot be recorded, such as allocating or
  /// waiting.
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) override;

  /// The device's one stream, for kernels and libraries (a cudaStream_t). Makes the device current in the calling
  /// thread.
  CUstream_st* stream();

  int multiprocessors();

 private:
  struct Body;
  Body& open();

  int number_;
  std::size_t memory_limit_;
  std::unique_ptr<Body> body_;
};

/// In cuda_peak.cpp: operations per second of multiply-adds whose operands stay in registers, on every multiprocessor.
/// The result is compared with the host's. For Backend::peak_flops_per_second. Takes less than a second. Throws
/// Unsupported for a type other than f32 and f64, DeviceError, OutOfMemory.
double cuda_peak_flops_per_second(CudaDevice&, DType);

}  // namespace lamina
