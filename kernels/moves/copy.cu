// Copy: to = from, or to += from, between tensors of one shape and any pitches.
//
// A thread moves one pack of 16 bytes, image by image along the grid's y; dense tensors are one long image.
// Per element: one read and one write, and one more read if it adds.

#include "copy.h"

#include "kernels/common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T, int width>
__global__ void copy_kernel(Extent extent, Images<const T> from, Images<T> to, bool adds) {
  for_each_pack<width>(extent,
                       [&](int n, std::int64_t i) { put_pack(to.at(n) + i, load_pack<width>(from.at(n) + i), adds); });
}

}  // namespace

template <class T>
void copy(Stream stream, View<const T> from, View<T> to, bool adds) {
  with_packs<T>(
      true,
      [&](auto w, Extent extent) {
        constexpr int width = decltype(w)::value;
        launch(LAMINA_KERNEL(copy_kernel<T, width>), grid_of_packs(extent, width), pack_threads, 0, stream, extent,
               from, to, adds);
      },
      to, from);
}

template void copy(Stream, View<const float>, View<float>, bool);
template void copy(Stream, View<const double>, View<double>, bool);

}  // namespace lamina::LAMINA_CUDA_SPACE
