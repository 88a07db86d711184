// Functions of one element. The formulas are beside their code (functions.h).
//
// A thread computes one pack of 16 bytes. Images are along the grid's y; dense tensors count as one long image. Per
// element, forward: one read and one write. Backward: two reads and one write.

#include "pointwise.h"

#include "kernels/common/packs.h"
#include "kernels/functions.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class F, class T, int width>
__global__ void pointwise_forward_kernel(Extent extent, F f, Images<const T> x, Images<T> y) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Loaded<T, width> pack = load_pack<width>(x.at(n) + i);
    for (auto& value : pack.v) value = f.value(value);
    store_pack(y.at(n) + i, pack);
  });
}

template <class F, class T, int width>
__global__ void pointwise_backward_kernel(Extent extent, F f, Images<const T> v, Images<const T> dy, Images<T> dx,
                                          bool adds) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    const Loaded<T, width> value = load_pack<width>(v.at(n) + i);
    Loaded<T, width> pack = load_pack<width>(dy.at(n) + i);
    for (int k = 0; k < width; ++k) pack.v[k] = f.gradient(value.v[k], pack.v[k]);
    put_pack(dx.at(n) + i, pack, adds);
  });
}

/// Calls use(Of<...>) for the function. There is no gradient of a hard sigmoid for halves.
template <class T, bool gradient, class Use, int... i>
void with_function(const PointwiseFunction& f, const Use& use, std::integer_sequence<int, i...>) {
  using C = Computed<T>;
  const auto take = [&](auto its) {
    constexpr auto name = static_cast<PointwiseFunction::Name>(decltype(its)::value);
    if constexpr (!gradient || name != PointwiseFunction::hard_sigmoid || std::is_same_v<C, T>)
      use(functions::Of<name, C>{static_cast<C>(f.a), static_cast<C>(f.b)});
  };
  ((f.name == i ? take(std::integral_constant<int, i>()) : void()), ...);
}

}  // namespace

template <class T>
void pointwise_forward(Stream stream, const PointwiseFunction& f, View<const T> x, View<T> y) {
  const auto run = [&](auto of) {
    packing_of<T>(true, y, x).launch_by(stream, [&](auto width, auto start) {
      start(LAMINA_KERNEL(pointwise_forward_kernel<decltype(of), T, width()>), of, x, y);
    });
  };
  with_function<T, false>(f, run, functions::all);
}

template <class T>
void pointwise_backward(Stream stream, const PointwiseFunction& f, View<const T> v, View<const T> dy, View<T> dx,
                        bool adds) {
  const auto run = [&](auto of) {
    packing_of<T>(true, dx, v, dy).launch_by(stream, [&](auto width, auto start) {
      start(LAMINA_KERNEL(pointwise_backward_kernel<decltype(of), T, width()>), of, v, dy, dx, adds);
    });
  };
  with_function<T, true>(f, run, functions::all);
}

#define LAMINA_INSTANTIATE(T)                                                                \
  template void pointwise_forward(Stream, const PointwiseFunction&, View<const T>, View<T>); \
  template void pointwise_backward(Stream, const PointwiseFunction&, View<const T>, View<const T>, View<T>, bool);
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
