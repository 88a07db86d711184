// Functions of one element. The formulas are beside their code.
//
// A thread computes one pack of 16 bytes. Images are along the grid's y; dense tensors count as one long image. Per
// element, forward: one read and one write. Backward: two reads and one write.

#include "pointwise.h"

#include <cmath>

#include "kernels/common/clamp_at_zero.h"
#include "kernels/common/packs.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// A function, with its numbers in the type of the elements. A NaN is not below, above or equal to anything.
template <class F, class T>
struct Of;

template <class T>
struct Of<pointwise::Relu, T> {
  explicit Of(const pointwise::Relu&) {}
  __device__ T value(T x) const { return clamp_at_zero(x); }
  __device__ T gradient(T y, T dy) const { return y > T(0) ? dy : T(0); }
};

template <class T>
struct Of<pointwise::Sigmoid, T> {
  explicit Of(const pointwise::Sigmoid&) {}
  __device__ T value(T x) const { return T(1) / (T(1) + std::exp(-x)); }
  __device__ T gradient(T y, T dy) const { return dy * (y * (T(1) - y)); }
};

template <class T>
struct Of<pointwise::Tanh, T> {
  explicit Of(const pointwise::Tanh&) {}
  __device__ T value(T x) const { return std::tanh(x); }
  __device__ T gradient(T y, T dy) const { return dy * (T(1) - y * y); }
};

template <class T>
struct Of<pointwise::Clip, T> {
  explicit Of(const pointwise::Clip& f) : low(static_cast<T>(f.low)), high(static_cast<T>(f.high)) {}
  __device__ T value(T x) const { return x < low ? low : x > high ? high : x; }
  __device__ T gradient(T y, T dy) const { return y > low && y < high ? dy : T(0); }
  T low, high;
};

template <class T>
struct Of<pointwise::HardSigmoid, T> {
  explicit Of(const pointwise::HardSigmoid& f) : alpha(static_cast<T>(f.alpha)), beta(static_cast<T>(f.beta)) {}
  __device__ T value(T x) const {
    const T y = alpha * x + beta;
    return y < T(0) ? T(0) : y > T(1) ? T(1) : y;
  }
  __device__ T gradient(T y, T dy) const { return y > T(0) && y < T(1) ? alpha * dy : T(0); }
  T alpha, beta;
};

template <class T>
struct Of<pointwise::HardSwish, T> {
  explicit Of(const pointwise::HardSwish&) {}
  __device__ T value(T x) const { return x <= T(-3) ? T(0) : x >= T(3) ? x : x * (x * T(1.0 / 6) + T(0.5)); }
  __device__ T gradient(T x, T dy) const { return x <= T(-3) ? T(0) : x >= T(3) ? dy : dy * (x * T(1.0 / 3) + T(0.5)); }
};

/// Silu, with s = 1 / (1 + exp(-x)). Beyond +-limit, where s is 0 or 1, products of infinity and 0 are avoided.
template <class T>
struct Of<pointwise::Silu, T> {
  explicit Of(const pointwise::Silu&) {}
  __device__ T value(T x) const { return x < -limit ? T(0) : x / (T(1) + std::exp(-x)); }
  __device__ T gradient(T x, T dy) const {
    const T near = x > limit ? limit : x < -limit ? -limit : x, s = T(1) / (T(1) + std::exp(-near));
    return dy * (s * (T(1) + near * (T(1) - s)));
  }
  static constexpr T limit = 1000;
};

template <class F, class T, int width>
__global__ void pointwise_forward_kernel(Extent extent, Of<F, Computed<T>> f, Images<const T> x, Images<T> y) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    Loaded<T, width> pack = load_pack<width>(x.at(n) + i);
    for (auto& value : pack.v) value = f.value(value);
    store_pack(y.at(n) + i, pack);
  });
}

template <class F, class T, int width>
__global__ void pointwise_backward_kernel(Extent extent, Of<F, Computed<T>> f, Images<const T> v, Images<const T> dy,
                                          Images<T> dx, bool adds) {
  for_each_pack<width>(extent, [&](int n, std::int64_t i) {
    const Loaded<T, width> value = load_pack<width>(v.at(n) + i);
    Loaded<T, width> pack = load_pack<width>(dy.at(n) + i);
    for (int k = 0; k < width; ++k) pack.v[k] = f.gradient(value.v[k], pack.v[k]);
    put_pack(dx.at(n) + i, pack, adds);
  });
}

}  // namespace

template <class F, class T>
void pointwise_forward(Stream stream, const F& f, View<const T> x, View<T> y) {
  with_packs<T>(
      true,
      [&](auto w, Extent extent) {
        constexpr int width = decltype(w)::value;
        launch(LAMINA_KERNEL(pointwise_forward_kernel<F, T, width>), grid_of_packs(extent, width), pack_threads, 0,
               stream, extent, Of<F, Computed<T>>(f), x, y);
      },
      y, x);
}

template <class F, class T>
void pointwise_backward(Stream stream, const F& f, View<const T> v, View<const T> dy, View<T> dx, bool adds) {
  with_packs<T>(
      true,
      [&](auto w, Extent extent) {
        constexpr int width = decltype(w)::value;
        launch(LAMINA_KERNEL(pointwise_backward_kernel<F, T, width>), grid_of_packs(extent, width), pack_threads, 0,
               stream, extent, Of<F, Computed<T>>(f), v, dy, dx, adds);
      },
      dx, v, dy);
}

#define LAMINA_POINTWISE(F, T)                                                          \
  template void pointwise_forward(Stream, const pointwise::F&, View<const T>, View<T>); \
  template void pointwise_backward(Stream, const pointwise::F&, View<const T>, View<const T>, View<T>, bool);
#define LAMINA_INSTANTIATE(T)    \
  LAMINA_POINTWISE(Relu, T)      \
  LAMINA_POINTWISE(Sigmoid, T)   \
  LAMINA_POINTWISE(Tanh, T)      \
  LAMINA_POINTWISE(Clip, T)      \
  LAMINA_POINTWISE(HardSwish, T) \
  LAMINA_POINTWISE(Silu, T)
LAMINA_FOR_STORED_TYPES(LAMINA_INSTANTIATE)
LAMINA_POINTWISE(HardSigmoid, float)
LAMINA_POINTWISE(HardSigmoid, double)

}  // namespace lamina::LAMINA_CUDA_SPACE
