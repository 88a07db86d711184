// Fill: to = value.
//
// A thread writes one pack of 16 bytes, image by image along the grid's y; a dense tensor is one long image.
// Per element: one write.

#include "moves.h"

#include "kernels/common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T, int width>
__global__ void fill_kernel(Extent extent, Images<T> to, Computed<T> value) {
  Loaded<T, width> pack;
  for (auto& element : pack.v) element = value;
  for_each_pack<width>(extent, [&](int n, std::int64_t i) { store_pack(to.at(n) + i, pack); });
}

}  // namespace

template <class T>
void fill(Stream stream, View<T> to, Computed<T> value) {
  if (to.image() == 0) return;
  with_packs<T>(
      true,
      [&](auto w, Extent extent) {
        constexpr int width = decltype(w)::value;
        launch(LAMINA_KERNEL(fill_kernel<T, width>), grid_of_packs(extent, width), pack_threads, 0, stream, extent, to,
               value);
      },
      to);
}

#define LAMINA_INSTANTIATE(T) template void fill(Stream, View<T>, Computed<T>);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
