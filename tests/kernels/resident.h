#pragma once
// Numbers in device memory. Tests of launchers are compiled for cuda-host and, in a build with CUDA, once more for the
// first GPU (tiles_on_gpu.cpp). The namespace tells which device runs the kernels.

#include "kernels/types/stream.h"
#include "tests/support/catch.h"
#if defined(LAMINA_CUDA_ON_HOST)
#include "lib/core/device/host/host_device.h"
/// A test that runs on the host and on a GPU.
#define KERNEL_TEST(name) TEST_CASE(name)
#else
#include "lib/core/device/cuda/cuda_device.h"
#include "tests/support/skip.h"
#define KERNEL_TEST(name) TEST_CASE(name " on a GPU", "[.cuda]")
#endif

namespace lamina::LAMINA_CUDA_SPACE {

#if defined(LAMINA_CUDA_ON_HOST)
inline Device& tested_device() {
  static HostDevice device(1);
  return device;
}
inline Stream tested_stream() { return nullptr; }
#else
inline CudaDevice& tested_device() {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) test::skip_without_gpu(reason);
  static CudaDevice& device = *new CudaDevice;  // never destroyed: the driver may end first
  return device;
}
inline Stream tested_stream() { return tested_device().stream(); }
#endif

template <class T>
class Resident {
 public:
  explicit Resident(std::vector<T> first) : values(std::move(first)), buffer_(tested_device(), bytes()) {
    if (!values.empty()) tested_device().upload(data(), values.data(), bytes());
  }
  T* data() const { return static_cast<T*>(buffer_.data()); }
  std::vector<T> now() const {
    std::vector<T> read(values.size());
    if (!read.empty()) tested_device().download(read.data(), data(), bytes());
    return read;
  }

  const std::vector<T> values;  ///< initial values

 private:
  std::size_t bytes() const { return values.size() * sizeof(T); }
  Buffer buffer_;
};

/// Memory of `bytes` bytes for a launcher, full of NaN.
template <class T>
Resident<T> scratch(std::size_t bytes) {
  return Resident<T>(std::vector<T>(bytes / sizeof(T), std::numeric_limits<T>::quiet_NaN()));
}

}  // namespace lamina::LAMINA_CUDA_SPACE
