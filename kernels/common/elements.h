#pragma once
// One thread for one element of a tensor: functions that element-wise kernels share.

#include <algorithm>

#include "halves.h"
#include "launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

constexpr int elements_per_block = 256;

/// The grid with a thread for each element. Elements of an image are along x, images along y. Threads stride over both
/// if the tensor is larger than the largest grid.
template <class T>
dim3 grid_of_elements(const View<T>& view) {
  const std::int64_t blocks = divide_up(view.image(), elements_per_block);
  return dim3(static_cast<unsigned>(std::min<std::int64_t>(blocks, 65535)),
              static_cast<unsigned>(std::min(view.n, 65535)));
}

/// Calls body(image, element of the image) for every element of this thread.
template <class T, class Body>
__device__ void for_each_element(const View<T>& view, Body body) {
  const std::int64_t image = view.image();
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (int n = static_cast<int>(blockIdx.y); n < view.n; n += static_cast<int>(gridDim.y))
    for (std::int64_t i = first; i < image; i += stride) body(n, i);
}

/// for_each_element() for images that consist of planes: calls body(image, channel, row, column, element of the image).
/// An image has fewer than 2^31 elements, so 32-bit divisions suffice.
template <class T, class Body>
__device__ void for_each_pixel(const View<T>& view, Body body) {
  for_each_element(view, [&](int n, std::int64_t element) {
    const auto i = static_cast<unsigned>(element), row = i / static_cast<unsigned>(view.w);
    const unsigned channel = row / static_cast<unsigned>(view.h);
    body(n, static_cast<int>(channel), static_cast<int>(row - channel * static_cast<unsigned>(view.h)),
         static_cast<int>(i - row * static_cast<unsigned>(view.w)), element);
  });
}

/// Sets to = value, or adds to += value.
template <class T>
__device__ void put(T& to, Computed<T> value, bool adds) {
  store(to, adds ? load(to) + value : value);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
