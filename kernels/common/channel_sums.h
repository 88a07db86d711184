#pragma once
// Sums over the images and pixels of every channel: the first step of both directions of batch normalisation and of
// the gradients of biases, scales and slopes.
//
// A channel's packs, image by image, are split into slices of equal length, one block each. A block sums in double,
// through warps, and writes to `partial`. The kernel that reads `partial` adds the slices in order, with one warp per
// channel. The number of slices depends on the shape alone, so the bits do not depend on the device.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "packs.h"
#include "reduce.h"

namespace lamina::LAMINA_CUDA_SPACE {

constexpr int sum_threads = 256;

/// Threads of a block for channels of `count` values: one warp if the values are few.
inline int sum_threads_for(std::int64_t count) { return count < 4 * sum_threads ? lanes : sum_threads; }

/// Two sums that a kernel computes at once.
struct Sums {
  double first = 0, second = 0;
};

/// Blocks for one channel of `count` values: enough to fill a large device, but at least 1024 values per block.
inline int slices_of(int channels, std::int64_t count) {
  constexpr std::int64_t blocks = 4 * large_device, least = 1024;  // four run on a multiprocessor at once
  return static_cast<int>(std::clamp<std::int64_t>(std::min(blocks / channels, count / least), 1, blocks));
}

/// A block for every channel and slice. Neighbouring channels are along x, because small planes share sectors.
inline dim3 grid_of_slices(int channels, std::int64_t count) {
  return dim3(static_cast<unsigned>(channels), static_cast<unsigned>(slices_of(channels, count)));
}

/// Calls use(std::integral_constant<int, width>()) with the widest pack in which every plane of the tensors can be
/// read. A tensor may be null.
template <class T, class Use, class... Views>
void with_packs_of_planes(const Use& use, const Views&... views) {
  const auto fits = [](const View<const T>& view) {
    return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && view.plane() % widest<T> == 0 &&
           (view.n == 1 || view.pitch % widest<T> == 0);
  };
  if (((views.data == nullptr || fits(views)) && ...))
    use(std::integral_constant<int, widest<T>>());
  else
    use(std::integral_constant<int, 1>());
}

/// Calls body(image, first pixel of the pack) for this thread's packs of slice blockIdx.y of a channel.
template <int width, class Body>
__device__ void for_each_pack_of_slice(int images, std::int64_t plane, Body body) {
  const std::int64_t row = plane / width, packs = images * row;
  const std::int64_t last = packs * (blockIdx.y + 1) / gridDim.y;
  std::int64_t i = packs * blockIdx.y / gridDim.y + threadIdx.x;
  std::int64_t n = i / row, pack = i % row;
  const std::int64_t images_ahead = blockDim.x / row, packs_ahead = blockDim.x % row;
  for (; i < last; i += blockDim.x) {
    body(static_cast<int>(n), pack * width);
    n += images_ahead;
    pack += packs_ahead;
    if (pack >= row) {
      pack -= row;
      ++n;
    }
  }
}

/// Adds the sums of all threads and writes them to the place of the block's slice. Every thread of the block calls it,
/// once.
__device__ inline void store_partial(Sums sums, Sums* partial) {
  LAMINA_SHARED(double[sum_threads / lanes], first);
  LAMINA_SHARED(double[sum_threads / lanes], second);
  sums = {reduce_warp(sums.first, Plus()), reduce_warp(sums.second, Plus())};
  if (threadIdx.x % lanes == 0) {
    first[threadIdx.x / lanes] = sums.first;
    second[threadIdx.x / lanes] = sums.second;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned i = 1; i < blockDim.x / lanes; ++i) {
    sums.first += first[i];
    sums.second += second[i];
  }
  partial[std::int64_t{blockIdx.x} * gridDim.y + blockIdx.y] = sums;
}

/// The sums of one channel, in every lane of the calling warp.
__device__ inline Sums sum_partials(const Sums* partial, int channel, int slices) {
  Sums sums;
  for (int i = static_cast<int>(threadIdx.x) % lanes; i < slices; i += lanes) {
    const Sums slice = partial[std::int64_t{channel} * slices + i];
    sums.first += slice.first;
    sums.second += slice.second;
  }
  return {reduce_warp(sums.first, Plus()), reduce_warp(sums.second, Plus())};
}

/// first[c] and second[c] = the sums of partial[image][c][slice] over images and slices, or += these sums with `adds`.
/// `second` may be null.
template <class T>
void put_channel_sums(Stream, const Sums* partial, int images, int channels, int slices, T* first, T* second,
                      bool adds);

/// Keeps the values of the current channel during a walk through an image. An image has fewer than 2^31 elements.
template <class Number>
class ChannelWalk {
 public:
  __device__ ChannelWalk(const Number* numbers, std::int64_t plane, std::int64_t element)
      : numbers_(numbers), plane_(static_cast<unsigned>(plane)) {
    const unsigned channel = static_cast<unsigned>(element) / plane_;
    numbers_ += channel;
    left_ = (channel + 1) * plane_ - static_cast<unsigned>(element);
  }

  __device__ const Number& operator*() const { return *numbers_; }
  __device__ void step() {
    if (--left_ > 0) return;
    ++numbers_;
    left_ = plane_;
  }

 private:
  const Number* numbers_;
  unsigned plane_, left_;
};

}  // namespace lamina::LAMINA_CUDA_SPACE
