#pragma once
// Threads for the elements of images that consist of planes: the channel, row and column of an element.

#include "elements.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Calls body(image, channel, row, column, element of the image) for every element of this thread.
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

}  // namespace lamina::LAMINA_CUDA_SPACE
