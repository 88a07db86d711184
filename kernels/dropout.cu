// Dropout: y[i] = x[i] * (word i mod 4 of Philox(key, (i / 4, step)) < threshold ? 0 : scale), i over the whole batch.
// The gradient is the same function of dy.
//
// A thread draws the words of one counter and computes their four elements. It moves packs of 16 bytes if the elements
// are contiguous in one image and aligned, else single elements. A pack of halves takes two counters. A separate launch
// advances the step, so that all blocks of the next launch read the same step. Per element: one read, one write; a
// quarter of ten Philox rounds.

#include "dropout.h"

#include <cstdint>

#include "kernels/common/packs.h"
#include "kernels/common/philox.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int words = 4;  // words of one counter

__global__ void dropout_advance_kernel(std::uint64_t* next, std::uint64_t* now) {
  *now = *next;
  *next = *now + 1;
}

template <class T, int width>
__global__ void dropout_kernel(Extent extent, DropoutMask mask, const std::uint64_t* step, Images<const T> from,
                               Images<T> to, bool adds) {
  constexpr int counters = width > words ? width / words : 1, drawn = counters * words;
  const std::int64_t count = extent.images * extent.size;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  const std::uint64_t high = *step;
  const auto scale = static_cast<Computed<T>>(mask.scale);
  for (std::int64_t place = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; place < divide_up(count, drawn);
       place += stride) {
    PhiloxWords random[counters];
    for (int i = 0; i < counters; ++i)
      random[i] = philox_words(mask.key, static_cast<std::uint64_t>(place * counters + i), high);
    for (int k = 0; k < drawn; k += width) {
      const std::int64_t element = place * drawn + k;
      if (element >= count) break;
      const std::int64_t n = extent.images == 1 ? 0 : element / extent.size, i = element - n * extent.size;
      Loaded<T, width> pack = load_pack<width>(from.at(static_cast<int>(n)) + i);
      for (int j = 0; j < width; ++j)
        pack.v[j] *= random[(k + j) / words].word[(k + j) % words] < mask.threshold ? Computed<T>(0) : scale;
      put_pack(to.at(static_cast<int>(n)) + i, pack, adds);
    }
  }
}

}  // namespace

void dropout_advance(Stream stream, std::uint64_t* next, std::uint64_t* now) {
  launch(LAMINA_KERNEL(dropout_advance_kernel), 1, 1, 0, stream, next, now);
}

template <class T>
void dropout_apply(Stream stream, const DropoutMask& mask, const std::uint64_t* step, View<const T> from, View<T> to,
                   bool adds) {
  packing_of<T>(true, to, from).with_width([&](auto w, Extent extent) {
    constexpr int width = decltype(w)::value;
    const unsigned blocks = blocks_for(divide_up(to.count(), std::max(words, width)), pack_threads);
    launch(LAMINA_KERNEL(dropout_kernel<T, width>), blocks, pack_threads, 0, stream, extent, mask, step, from, to,
           adds);
  });
}

#define LAMINA_INSTANTIATE(T) \
  template void dropout_apply(Stream, const DropoutMask&, const std::uint64_t*, View<const T>, View<T>, bool);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
