// Global average pooling: y[n,c] = mean over h,w of x[n,c,h,w]; dx[n,c,h,w] = dy[n,c] / (H W).
//
// Forward, a warp sums one plane: each lane sums every 32nd pixel, then the lanes are added. 8 planes a block, planes
// along the grid's x. Backward, a thread writes one pack of 16 bytes, images along the grid's y.
// Per element of x: one read forward; one write backward.

#include "pool.h"

#include "kernels/common/packs.h"
#include "kernels/common/reduce.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int warps = 8;  // warps of a block

template <class T>
__global__ void global_average_pool_forward_kernel(View<const T> x, View<T> y) {
  const std::int64_t planes = std::int64_t{x.n} * x.c, plane = x.plane();
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const std::int64_t first = std::int64_t{blockIdx.x} * warps + threadIdx.x / lanes;
  for (std::int64_t i = first; i < planes; i += std::int64_t{gridDim.x} * warps) {
    const int n = static_cast<int>(i / x.c), c = static_cast<int>(i - std::int64_t{n} * x.c);
    const T* from = x.at(n, c);
    LongSum<Computed<T>> of_lane;
    for (std::int64_t at = lane; at < plane; at += lanes) of_lane.add(load(from[at]));
    const double sum = reduce_warp(of_lane.sum(), Plus());
    if (lane == 0) store(*y.at(n, c), static_cast<Computed<T>>(sum / static_cast<double>(plane)));
  }
}

template <class T, int width>
__global__ void global_average_pool_backward_kernel(Extent extent, View<const T> dy, View<T> dx, bool adds) {
  const auto plane = static_cast<unsigned>(dx.plane());
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Loaded<T, width> pack;
    for (int k = 0; k < width; ++k) {
      const unsigned channel = (static_cast<unsigned>(i) + static_cast<unsigned>(k)) / plane;
      pack.v[k] = load(*dy.at(n, static_cast<int>(channel))) / static_cast<Computed<T>>(plane);
    }
    put_pack(dx.at(n, 0) + i, pack, adds);
  });
}

}  // namespace

template <class T>
void global_average_pool_forward(Stream stream, View<const T> x, View<T> y) {
  launch(LAMINA_KERNEL(global_average_pool_forward_kernel<T>), blocks_for(std::int64_t{x.n} * x.c, warps),
         warps * lanes, 0, stream, x, y);
}

template <class T>
void global_average_pool_backward(Stream stream, View<const T> dy, View<T> dx, bool adds) {
  packing_of<T>(false, dx).launch_by(stream, [&](auto width, auto start) {
    start(LAMINA_KERNEL(global_average_pool_backward_kernel<T, width()>), dy, dx, adds);
  });
}

#define LAMINA_INSTANTIATE(T)                                                \
  template void global_average_pool_forward(Stream, View<const T>, View<T>); \
  template void global_average_pool_backward(Stream, View<const T>, View<T>, bool);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
