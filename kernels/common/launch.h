#pragma once
// CUDA's words and the one way to launch a kernel, for every kernel file. Under nvcc the words are the runtime's. Under
// another compiler they come from host/cuda_on_host.h, which runs the same kernels on the host.

#include "kernels/types/stream.h"

#if defined(LAMINA_CUDA_ON_HOST)
#include "kernels/host/cuda_on_host.h"
#else
#include <cuda_runtime.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#endif

namespace lamina::LAMINA_CUDA_SPACE {

/// Multiprocessors of a large device, an H200. On every device, launchers split work into as many blocks as an H200
/// needs. So the order of sums depends on the shape alone.
constexpr std::int64_t large_device = 132;

/// The type T itself. It allows TypeIdentity<float[8]> x, where plain C++ needs float x[8].
template <class T>
using TypeIdentity = T;

}  // namespace lamina::LAMINA_CUDA_SPACE

/// The kernel to launch, with its name for messages: LAMINA_KERNEL(gemm_kernel<T, 8>).
#define LAMINA_KERNEL(...) (__VA_ARGS__), #__VA_ARGS__

/// Explicit instantiations of a file's launchers: define LAMINA_INSTANTIATE(T), then
/// LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE).
#define LAMINA_FOR_FLOATS(INSTANTIATE) INSTANTIATE(float) INSTANTIATE(double)
#define LAMINA_FOR_HALVES(INSTANTIATE) INSTANTIATE(F16) INSTANTIATE(BF16)
#define LAMINA_FOR_STORED_TYPES(INSTANTIATE) LAMINA_FOR_FLOATS(INSTANTIATE) LAMINA_FOR_HALVES(INSTANTIATE)

#if !defined(LAMINA_CUDA_ON_HOST)

/// An object, or an array, in static shared memory: LAMINA_SHARED(float[8][32], tile);
#define LAMINA_SHARED(T, name) __shared__ ::lamina::LAMINA_CUDA_SPACE::TypeIdentity<T> name

/// The launch's dynamic shared memory as an array of T, aligned to 16 bytes: LAMINA_DYNAMIC_SHARED(float, tile);
#define LAMINA_DYNAMIC_SHARED(T, name)                           \
  extern __shared__ __align__(16) unsigned char lamina_shared[]; \
  T* const name = reinterpret_cast<T*>(lamina_shared)

namespace lamina::LAMINA_CUDA_SPACE {

/// Throws LaunchError if the runtime refused the launch.
inline void check_launch(const char* name, cudaError_t error) {
  if (error != cudaSuccess)
    throw LaunchError(std::string("launch of ") + name + ": " + cudaGetErrorName(error) + " (" +
                      std::to_string(static_cast<int>(error)) + "): " + cudaGetErrorString(error));
}

/// Allows a kernel `bytes` bytes of dynamic shared memory on the current device. Later calls for as many bytes or fewer
/// do not call the driver. Throws LaunchError.
inline void allow_shared(const void* kernel, const char* name, std::size_t bytes) {
  static std::mutex mutex;
  static std::map<std::pair<const void*, int>, std::size_t> allowed;
  int device = 0;
  check_launch(name, cudaGetDevice(&device));
  const std::lock_guard<std::mutex> lock(mutex);
  std::size_t& most = allowed[{kernel, device}];
  if (bytes <= most) return;
  check_launch(name,
               cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  most = bytes;
}

/// Enqueues kernel(args...) over a grid of blocks; does not wait. Throws LaunchError.
template <class... Parameters, class... Args>
void launch(void (*kernel)(Parameters...), const char* name, dim3 grid, dim3 block, std::size_t shared_bytes,
            Stream stream, Args... args) {
  constexpr std::size_t without_asking = 48 * 1024;
  if (shared_bytes > without_asking) allow_shared(reinterpret_cast<const void*>(kernel), name, shared_bytes);
  kernel<<<grid, block, shared_bytes, stream>>>(static_cast<Parameters>(args)...);
  check_launch(name, cudaGetLastError());
}

}  // namespace lamina::LAMINA_CUDA_SPACE

#endif
