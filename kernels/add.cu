// Add: y = x[0] + x[1] + ..., then a function if requested; dx[i] = dy, or dy times the slope, which y determines.
//
// A thread computes one pack of 16 bytes, image by image along the grid's y; dense tensors are one long image. It reads
// every operand before it writes, so the result may alias any of them.
// Per element, forward: one read of each addend and one write. Backward: one read of dy (and of y after a function),
// one write of each gradient.

#include "add.h"

#include "kernels/common/packs.h"
#include "kernels/functions.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// The images of a launch's operands, as the kernel needs them.
template <class T>
struct Sources {
  Images<T> images[most_addends];
  bool adds[most_addends];
  int count;

  explicit Sources(const Operands<T>& operands) : adds{}, count(operands.count) {
    for (int i = 0; i < count; ++i) {
      images[i] = operands.views[i];
      adds[i] = operands.adds[i];
    }
  }
};

template <class T, int width, class F>
__global__ void add_two_kernel(Extent extent, Images<const T> a, Images<const T> b, Images<T> y, F f) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Loaded<T, width> sum = load_pack<width>(a.at(n) + i);
    const Loaded<T, width> more = load_pack<width>(b.at(n) + i);
    for (int k = 0; k < width; ++k) sum.v[k] += more.v[k];
    for (auto& value : sum.v) value = f.value(value);
    store_pack(y.at(n) + i, sum);
  });
}

template <class T, int width, class F>
__global__ void add_many_kernel(Extent extent, Sources<const T> x, Images<T> y, F f) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Loaded<T, width> sum = load_pack<width>(x.images[0].at(n) + i);
    for (int j = 1; j < x.count; ++j) {
      const Loaded<T, width> more = load_pack<width>(x.images[j].at(n) + i);
      for (int k = 0; k < width; ++k) sum.v[k] += more.v[k];
    }
    for (auto& value : sum.v) value = f.value(value);
    store_pack(y.at(n) + i, sum);
  });
}

template <class T, int width, class F>
__global__ void add_backward_kernel(Extent extent, Images<const T> dy, Images<const T> y, Sources<T> dx, F f) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Loaded<T, width> d = load_pack<width>(dy.at(n) + i);
    if (y.data != nullptr) {
      const Loaded<T, width> sum = load_pack<width>(y.at(n) + i);
      for (int k = 0; k < width; ++k) d.v[k] = f.gradient(sum.v[k], d.v[k]);
    }
    for (int j = 0; j < dx.count; ++j) put_pack(dx.images[j].at(n) + i, d, dx.adds[j]);
  });
}

template <class T, class U, class V>
Packing<T> packing_with(const View<U>& first, const Operands<V>& operands) {
  Packing<T> packing(first, true);
  for (int i = 0; i < operands.count; ++i) packing.look_at(operands.views[i]);
  return packing;
}

}  // namespace

template <class T>
void add_forward(Stream stream, const Operands<const T>& x, View<T> y, const PointwiseFunction& function) {
  with_ending<T>(function, [&](auto f) {
    using F = decltype(f);
    packing_with<T>(y, x).launch_by(stream, [&](auto width, auto start) {
      if (x.count == 2) {
        start(LAMINA_KERNEL(add_two_kernel<T, width(), F>), x.views[0], x.views[1], y, f);
      } else {
        start(LAMINA_KERNEL(add_many_kernel<T, width(), F>), Sources<const T>(x), y, f);
      }
    });
  });
}

template <class T>
void add_backward(Stream stream, View<const T> dy, View<const T> y, const PointwiseFunction& function,
                  const Operands<T>& dx) {
  Packing<T> packing = packing_with<T>(dy, dx);
  packing.look_at(y);
  with_ending<T>(function, [&](auto f) {
    packing.launch_by(stream, [&](auto width, auto start) {
      start(LAMINA_KERNEL(add_backward_kernel<T, width(), decltype(f)>), dy, y, Sources<T>(dx), f);
    });
  });
}

#define LAMINA_INSTANTIATE(T)                                                                     \
  template void add_forward(Stream, const Operands<const T>&, View<T>, const PointwiseFunction&); \
  template void add_backward(Stream, View<const T>, View<const T>, const PointwiseFunction&, const Operands<T>&);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
