// Multiply: y = a b; da = dy b, db = dy a. If b is one factor for each plane, db is the sum of dy a over the plane.
//
// With equal shapes, a thread computes one pack of 16 bytes, and reads every operand before it writes. Images are along
// the grid's y. With one factor for each plane, forward is the same; backward, a warp takes one plane: each lane sums
// every 32nd pixel, then the lanes are added. A block has 8 planes, and planes are along the grid's x.
// Per element, forward: two reads (one with a factor for each plane) and one write. Backward: at most three reads and
// two writes.

#include "binary.h"

#include "kernels/common/elements.h"
#include "kernels/common/packs.h"
#include "kernels/common/reduce.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int warps = 8;  // warps of a block

template <class T, int width>
__device__ Pack<T, width> product(const Pack<T, width>& a, const Pack<T, width>& b) {
  Pack<T, width> y;
  for (int k = 0; k < width; ++k) y.v[k] = a.v[k] * b.v[k];
  return y;
}

template <class T, int width>
__global__ void multiply_forward_kernel(Extent extent, Images<const T> a, Images<const T> b, Images<T> y) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    store_pack(y.at(n) + i, product(load_pack<width>(a.at(n) + i), load_pack<width>(b.at(n) + i)));
  });
}

template <class T, int width>
__global__ void multiply_planes_forward_kernel(Extent extent, View<const T> a, View<const T> b, Images<T> y) {
  const auto plane = static_cast<unsigned>(a.plane());
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Pack<T, width> pack = load_pack<width>(a.at(n, 0) + i);
    for (int k = 0; k < width; ++k)
      pack.v[k] *= *b.at(n, static_cast<int>((static_cast<unsigned>(i) + static_cast<unsigned>(k)) / plane));
    store_pack(y.at(n) + i, pack);
  });
}

template <class T>
struct GradientImages {
  Images<T> da, db;
  bool adds_a, adds_b;
};

template <class T, int width>
__global__ void multiply_backward_kernel(Extent extent, Images<const T> a, Images<const T> b, Images<const T> dy,
                                         GradientImages<T> gradients) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    const Pack<T, width> d = load_pack<width>(dy.at(n) + i);
    Pack<T, width> da, db;
    if (gradients.da.data != nullptr) da = product(d, load_pack<width>(b.at(n) + i));
    if (gradients.db.data != nullptr) db = product(d, load_pack<width>(a.at(n) + i));
    if (gradients.da.data != nullptr) put_pack(gradients.da.at(n) + i, da, gradients.adds_a);
    if (gradients.db.data != nullptr) put_pack(gradients.db.at(n) + i, db, gradients.adds_b);
  });
}

template <class T>
__global__ void multiply_planes_backward_kernel(View<const T> a, View<const T> b, View<const T> dy,
                                                Factors<T> gradients) {
  const std::int64_t planes = std::int64_t{dy.n} * dy.c, plane = dy.plane();
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const std::int64_t first = std::int64_t{blockIdx.x} * warps + threadIdx.x / lanes;
  for (std::int64_t i = first; i < planes; i += std::int64_t{gridDim.x} * warps) {
    const int n = static_cast<int>(i / dy.c), c = static_cast<int>(i - std::int64_t{n} * dy.c);
    const T* const from = dy.at(n, c);
    const bool wants_a = gradients.da.data != nullptr, wants_b = gradients.db.data != nullptr;
    const T factor = wants_a ? *b.at(n, c) : T(0);
    LongSum<T> of_lane;
    for (std::int64_t at = lane; at < plane; at += lanes) {
      const T d = from[at];
      if (wants_b) of_lane.add(d * a.at(n, c)[at]);
      if (wants_a) put(gradients.da.at(n, c)[at], d * factor, gradients.adds_a);
    }
    if (!wants_b) continue;
    const double sum = reduce_warp(of_lane.sum(), Plus());
    if (lane == 0) put(*gradients.db.at(n, c), static_cast<T>(sum), gradients.adds_b);
  }
}

template <class T>
bool alike(const View<const T>& a, const View<const T>& b) {
  return a.h == b.h && a.w == b.w;
}

}  // namespace

template <class T>
void multiply_forward(Stream stream, View<const T> a, View<const T> b, View<T> y) {
  if (alike(a, b)) {
    with_packs<T>(
        true,
        [&](auto w, Extent extent) {
          constexpr int width = decltype(w)::value;
          launch(LAMINA_KERNEL(multiply_forward_kernel<T, width>), grid_of_packs(extent, width), pack_threads, 0,
                 stream, extent, a, b, y);
        },
        y, a, b);
  } else {
    with_packs<T>(
        false,
        [&](auto w, Extent extent) {
          constexpr int width = decltype(w)::value;
          launch(LAMINA_KERNEL(multiply_planes_forward_kernel<T, width>), grid_of_packs(extent, width), pack_threads, 0,
                 stream, extent, a, b, y);
        },
        y, a);
  }
}

template <class T>
void multiply_backward(Stream stream, View<const T> a, View<const T> b, View<const T> dy, const Factors<T>& gradients) {
  if (alike(a, b)) {
    with_packs<T>(
        true,
        [&](auto w, Extent extent) {
          constexpr int width = decltype(w)::value;
          launch(LAMINA_KERNEL(multiply_backward_kernel<T, width>), grid_of_packs(extent, width), pack_threads, 0,
                 stream, extent, a, b, dy,
                 GradientImages<T>{gradients.da, gradients.db, gradients.adds_a, gradients.adds_b});
        },
        dy, a, b, gradients.da, gradients.db);
  } else {
    launch(LAMINA_KERNEL(multiply_planes_backward_kernel<T>), blocks_for(std::int64_t{dy.n} * dy.c, warps),
           warps * lanes, 0, stream, a, b, dy, gradients);
  }
}

#define LAMINA_INSTANTIATE(T)                                                    \
  template void multiply_forward(Stream, View<const T>, View<const T>, View<T>); \
  template void multiply_backward(Stream, View<const T>, View<const T>, View<const T>, const Factors<T>&);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
