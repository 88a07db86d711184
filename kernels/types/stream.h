#pragma once
// What callers of launchers need, without any header of CUDA: the namespace, the stream, the view, the error.
//
// Every kernel and the whole backend are compiled twice: by nvcc for a device, as lamina::cuda, and by the host's
// compiler, with LAMINA_CUDA_ON_HOST defined, as lamina::cuda_host.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#if defined(LAMINA_CUDA_ON_HOST)
#define LAMINA_CUDA_SPACE cuda_host
#else
#define LAMINA_CUDA_SPACE cuda
#endif

#if defined(__CUDACC__)
#define LAMINA_HOST_DEVICE __host__ __device__
#else
#define LAMINA_HOST_DEVICE
#endif

struct CUstream_st;

namespace lamina::LAMINA_CUDA_SPACE {

/// The runtime's cudaStream_t. Null is the default stream; on the host it is always null.
using Stream = CUstream_st*;

/// A number as it is stored in 16 bits. Kernels compute with it in float (halves.h).
struct F16 {
  std::uint16_t bits;
};
struct BF16 {
  std::uint16_t bits;
};
template <class T>
constexpr bool is_stored_half = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;

/// The type in which kernels compute with elements of T.
template <class T>
using Computed = std::conditional_t<is_stored_half<T>, float, T>;

/// A failed launch, or a kernel that broke a rule of the machine. The message has the kernel's name and the reason.
class LaunchError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A tensor in n, c, h, w order. Images are `pitch` elements apart, and dense inside.
template <class T>
struct View {
  T* data = nullptr;
  int n = 1, c = 1, h = 1, w = 1;
  std::int64_t pitch = 0;

  LAMINA_HOST_DEVICE std::int64_t plane() const { return std::int64_t{h} * w; }
  LAMINA_HOST_DEVICE std::int64_t image() const { return c * plane(); }
  LAMINA_HOST_DEVICE std::int64_t count() const { return n * image(); }
  /// First element of channel `channel` of image `number`.
  LAMINA_HOST_DEVICE T* at(int number, int channel) const { return data + number * pitch + channel * plane(); }

  /// View<T> converts to View<const T>.
  template <class U, class = std::enable_if_t<std::is_same_v<U, const T> && !std::is_const_v<T>>>
  operator View<U>() const {  // NOLINT: implicit on purpose
    return {data, n, c, h, w, pitch};
  }
};

/// An image as repeats x outer x cells x inner elements; inner elements are adjacent. For each outer and inner index, a
/// kernel joins the cells of all repeats.
struct CellsAlong {
  int repeats, outer, cells, inner;
};

/// Bytes of workspace for the sums over channels of `count` values (channel_sums.h).
std::size_t channel_sums_bytes(int channels, std::int64_t count);

/// count / unit, rounded up. `count` is not negative.
template <class Count, class Unit>
LAMINA_HOST_DEVICE constexpr auto divide_up(Count count, Unit unit) {
  return (count + unit - 1) / unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
