#pragma once
// CUDA's words on the host, as far as kernels and the tests of this substitute use them: kernel files include this
// instead of the CUDA runtime when they are compiled for cuda-host. Inline PTX, clusters, cp.async, wgmma and TMA are
// missing; a kernel that needs them runs on devices only.

#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "grid.h"

// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-macro-parentheses,cppcoreguidelines-macro-usage): the words are
// CUDA's, and the name of a type takes no parentheses
#define __global__
#define __device__
#define __host__
#define __shared__                                                                                           \
  static_assert(false, "static shared memory is LAMINA_SHARED(T[count], name): the host has to know of it"); \
  static
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

#define __syncthreads() ::lamina::cuda_host::host::sync_block(__FILE__, __LINE__)
#define __syncthreads_count(predicate) ::lamina::cuda_host::host::sync_block(__FILE__, __LINE__, (predicate) ? 1 : 0)
#define __syncthreads_or(predicate) (__syncthreads_count(predicate) != 0 ? 1 : 0)

/// An object, or an array, in static shared memory: LAMINA_SHARED(float[8][32], tile). One block runs at a time, so
/// one object is enough; at the start of every block it holds NaN.
#define LAMINA_SHARED(T, name)                           \
  static ::lamina::cuda_host::TypeIdentity<T> name;      \
  static std::uint64_t lamina_block_that_has_##name = 0; \
  ::lamina::cuda_host::host::begin_shared(name, lamina_block_that_has_##name)

/// The launch's dynamic shared memory as an array of T, aligned to 16 bytes: LAMINA_DYNAMIC_SHARED(float, tile);
#define LAMINA_DYNAMIC_SHARED(T, name) T* const name = reinterpret_cast<T*>(::lamina::cuda_host::host::dynamic_shared())
// NOLINTEND(bugprone-reserved-identifier,bugprone-macro-parentheses,cppcoreguidelines-macro-usage)

namespace lamina::cuda_host {

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)
using std::fma;
using std::isnan;
template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  return b < a ? b : a;
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  return a < b ? b : a;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(std::uint64_t{a} * b >> 32); }
/// Time in nanoseconds, in place of cycles.
inline long long clock64() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// An atomic sum of integers only: the sum of floats would depend on the order.
template <class T>
T atomicAdd(T* to, T value) {
  static_assert(std::is_integral_v<T>, "kernels gather; there is no atomic sum of floats");
  const T old = *to;
  *to = static_cast<T>(old + value);
  return old;
}

inline void __syncwarp(unsigned mask = 0xffffffffU) {
  host::meet_warp(host::WarpPrimitive::sync, mask, 0, 0, warpSize);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return static_cast<unsigned>(host::meet_warp(host::WarpPrimitive::ballot, mask, predicate != 0 ? 1 : 0, 0, warpSize));
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0 ? 1 : 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask ? 1 : 0; }

namespace host {
template <class T>
T shuffle(WarpPrimitive primitive, unsigned mask, T value, int operand, int width) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = meet_warp(primitive, mask, bits, operand, width);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
}  // namespace host

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize) {
  return host::shuffle(host::WarpPrimitive::shuffle, mask, value, lane, width);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  return host::shuffle(host::WarpPrimitive::shuffle_up, mask, value, static_cast<int>(delta), width);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  return host::shuffle(host::WarpPrimitive::shuffle_down, mask, value, static_cast<int>(delta), width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize) {
  return host::shuffle(host::WarpPrimitive::shuffle_xor, mask, value, lanes, width);
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

/// Runs kernel(args...) over a grid of blocks, at once. Throws LaunchError.
template <class... Parameters, class... Args>
void launch(void (*kernel)(Parameters...), const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, Stream,
            Args... args) {
  struct Bound {
    void (*kernel)(Parameters...);
    std::tuple<std::decay_t<Parameters>...> args;
  } bound{kernel, {static_cast<Parameters>(args)...}};
  host::run_grid(
      {name, reinterpret_cast<const void*>(kernel), grid, block, shared_bytes},
      [](void* context) {
        auto& [function, values] = *static_cast<Bound*>(context);
        std::apply(function, values);
      },
      &bound);
}

}  // namespace lamina::cuda_host
