// The gradients of each channel's scale and shift from partial sums: one warp adds those of a channel.

#include "kernels/common/channel_sums.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
__global__ void channel_sums_kernel(const Sums* partial, int images, int slices, T* first, T* second, bool adds) {
  const std::int64_t channels = gridDim.x, c = blockIdx.x, parts = std::int64_t{images} * slices;
  Sums sums;
  for (std::int64_t i = threadIdx.x; i < parts; i += lanes) {
    const Sums part = partial[(i / slices * channels + c) * slices + i % slices];
    sums.first += part.first;
    sums.second += part.second;
  }
  sums = {reduce_warp(sums.first, Plus()), reduce_warp(sums.second, Plus())};
  if (threadIdx.x != 0) return;
  first[c] = static_cast<T>(adds ? sums.first + static_cast<double>(first[c]) : sums.first);
  if (second != nullptr) second[c] = static_cast<T>(adds ? sums.second + static_cast<double>(second[c]) : sums.second);
}

}  // namespace

std::size_t channel_sums_bytes(int channels, std::int64_t count) {
  return static_cast<std::size_t>(channels) * static_cast<std::size_t>(slices_of(channels, count)) * sizeof(Sums);
}

template <class T>
void put_channel_sums(Stream stream, const Sums* partial, int images, int channels, int slices, T* first, T* second,
                      bool adds) {
  launch(LAMINA_KERNEL(channel_sums_kernel<T>), static_cast<unsigned>(channels), lanes, 0, stream, partial, images,
         slices, first, second, adds);
}

#define LAMINA_INSTANTIATE(T) template void put_channel_sums(Stream, const Sums*, int, int, int, T*, T*, bool);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
