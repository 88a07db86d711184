// Copy: to = from, or to += from, between tensors of one shape and any pitches. Halves may be copied to float and back.
// Fill: to = value.
//
// A thread moves one pack of 16 bytes; between halves and float it moves 8 elements, 16 bytes of halves. Images are
// along the grid's y; dense tensors count as one long image.
// Per element: one write; a copy has one read, and one more if it adds.

#include "moves.h"

#include <type_traits>

#include "kernels/common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class From, class To, int width>
__global__ void copy_kernel(Extent extent, Images<const From> from, Images<To> to, bool adds) {
  for_each_pack<width>(extent,
                       [&](int n, std::int64_t i) { put_pack(to.at(n) + i, load_pack<width>(from.at(n) + i), adds); });
}

template <class T, int width>
__global__ void fill_kernel(Extent extent, Images<T> to, Computed<T> value) {
  Loaded<T, width> pack;
  for (auto& element : pack.v) element = value;
  for_each_pack<width>(extent, [&](int n, std::int64_t i) { store_pack(to.at(n) + i, pack); });
}

}  // namespace

template <class From, class To>
void copy(Stream stream, View<const From> from, View<To> to, bool adds) {
  using Smaller = std::conditional_t<sizeof(From) < sizeof(To), From, To>;
  packing_of<Smaller>(true, to, from).launch_by(stream, [&](auto width, auto start) {
    start(LAMINA_KERNEL(copy_kernel<From, To, width()>), from, to, adds);
  });
}

template <class T>
void fill(Stream stream, View<T> to, Computed<T> value) {
  if (to.image() == 0) return;
  packing_of<T>(true, to).launch_by(
      stream, [&](auto width, auto start) { start(LAMINA_KERNEL(fill_kernel<T, width()>), to, value); });
}

#define LAMINA_INSTANTIATE(T)                               \
  template void copy(Stream, View<const T>, View<T>, bool); \
  template void fill(Stream, View<T>, Computed<T>);
#define LAMINA_INSTANTIATE_CASTS(Half)                             \
  template void copy(Stream, View<const Half>, View<float>, bool); \
  template void copy(Stream, View<const float>, View<Half>, bool);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)
LAMINA_FOR_HALVES(LAMINA_INSTANTIATE_CASTS)

}  // namespace lamina::LAMINA_CUDA_SPACE
