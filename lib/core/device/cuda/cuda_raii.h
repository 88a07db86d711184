#pragma once
// Owners of objects of the CUDA runtime, which the functions below make. An object is released once, moved, never
// copied. Destructors ignore errors: at the end of a process the runtime may be destroyed before its users. Also a
// function that reads an attribute of a device.

#include <cstddef>
#include <utility>

#include "cuda_check.h"

namespace lamina::cudart {

/// Holds a handle and releases it by `Release`. A null handle is not released.
template <class Handle, auto Release>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) noexcept : handle_(handle) {}
  ~Owned() {
    if (handle_ != nullptr && Release(handle_) != cudaSuccess) (void)cudaGetLastError();
  }
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    Owned moved(std::move(other));
    std::swap(handle_, moved.handle_);
    return *this;
  }

  Handle get() const noexcept { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Memory = Owned<void*, [](void* data) { return cudaFree(data); }>;
using HostMemory = Owned<void*, [](void* data) { return cudaFreeHost(data); }>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using Executable = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

inline int attribute(cudaDeviceAttr which, int number) {
  int value = 0;
  LAMINA_CUDART(cudaDeviceGetAttribute(&value, which, number));
  return value;
}

/// A queue that is independent of the default stream: neither waits for the other.
inline Stream make_stream() {
  cudaStream_t stream = nullptr;
  LAMINA_CUDART(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

/// An event. By default it records the time; with cudaEventDisableTiming it only marks a place in a queue.
inline Event make_event(unsigned flags = cudaEventDefault) {
  cudaEvent_t event = nullptr;
  LAMINA_CUDART(cudaEventCreateWithFlags(&event, flags));
  return Event(event);
}

/// Page-locked memory of the host, for copies that run beside the host's work.
inline HostMemory make_host_memory(std::size_t bytes) {
  void* data = nullptr;
  LAMINA_CUDART(cudaMallocHost(&data, bytes));
  return HostMemory(data);
}

/// Throws OutOfMemory, with the device's free memory, if there is not enough.
inline Memory make_memory(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) (void)cudaGetLastError();
    throw OutOfMemory(bytes, free_bytes);
  }
  check(status, "cudaMalloc", __FILE__, __LINE__);
  return Memory(data);
}

}  // namespace lamina::cudart
