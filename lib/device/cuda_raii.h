#pragma once
// What the CUDA runtime lends, each with one owner: made by a constructor, given back once, moved, never copied.
// Destructors take no notice of errors: at the end of a process the runtime may be gone before its users.

#include <cstddef>
#include <utility>

#include "cuda_check.h"

namespace lamina::cudart {

/// Holds a handle and gives it back by `Release`. Null handles are nobody's.
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
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using Executable = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

/// A queue that does not wait for the default stream, nor it for this one.
inline Stream make_stream() {
  cudaStream_t stream = nullptr;
  LAMINA_CUDART(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

/// A mark that keeps the time.
inline Event make_event() {
  cudaEvent_t event = nullptr;
  LAMINA_CUDART(cudaEventCreate(&event));
  return Event(event);
}

/// Throws OutOfMemory, with what the device has free, where there is no room.
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
