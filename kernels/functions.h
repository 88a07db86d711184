#pragma once
// Device code of the functions of one element, for the op Pointwise and for ops that a function follows in one unit.

#include <cmath>
#include <type_traits>
#include <utility>

#include "kernels/common/clamp_at_zero.h"
#include "kernels/common/halves.h"
#include "kernels/pointwise.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace functions {

/// A function that is x times a factor of exponentials is 0 below -limit, and its slope is computed at an x within
/// +-limit. So there is no product of infinity and 0. Beyond the limit the factor is 0 or 1.
template <class T>
constexpr T limit = 1000;

template <class T>
__device__ T within(T x) {
  return x > limit<T> ? limit<T> : x < -limit<T> ? -limit<T> : x;
}

template <class T>
__device__ T logistic(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

/// The distribution function of the normal distribution.
template <class T>
__device__ T normal(T x) {
  return T(0.5) * std::erfc(x * T(-0.70710678118654752440));
}

// GELU by tanh is x (1 + tanh(u)) / 2, which is x logistic(2 u), with 2 u = x (linear + cubic x^2).
inline constexpr double linear = 1.5957691216057307117, cubic = 0.044715 * linear;  // linear: 2 sqrt(2 / pi)

template <class T>
__device__ T twice_u(T x) {
  return x * (T(linear) + T(cubic) * x * x);
}

/// tanh(log(1 + exp(x))) = n / (n + 2) with n = exp(x) (exp(x) + 2), all times w^2 for x > 0, where w = exp(-|x|).
template <class T>
struct Mish {
  bool above;
  T w, n, sum;
  explicit __device__ Mish(T x)
      : above(x > T(0)),
        w(std::exp(-std::abs(x))),
        n(above ? T(2) * w + T(1) : w * (w + T(2))),
        sum(n + (above ? T(2) * w * w : T(2))) {}
  __device__ T factor() const { return n / sum; }
  /// The factor of x is 4 exp(x) (1 + exp(x)) / (n + 2)^2.
  __device__ T slope(T x) const { return factor() + x * ((above ? w * w : w) * (T(1) + w) * T(4) / (sum * sum)); }
};

/// A function, with its numbers in the type of the elements. A NaN is not below, above or equal to anything.
template <PointwiseFunction::Name function, class T>
struct Of {
  T a, b;
  __device__ T value(T x) const {
    using F = PointwiseFunction;
    if constexpr (function == F::sigmoid) return logistic(x);
    if constexpr (function == F::tanh) return std::tanh(x);
    if constexpr (function == F::clip) return x < a ? a : x > b ? b : x;
    if constexpr (function == F::hard_sigmoid) {
      const T y = a * x + b;
      return y < T(0) ? T(0) : y > T(1) ? T(1) : y;
    }
    if constexpr (function == F::hard_swish) return x <= T(-3) ? T(0) : x >= T(3) ? x : x * (x * T(1.0 / 6) + T(0.5));
    if constexpr (function == F::silu) return x < -limit<T> ? T(0) : x / (T(1) + std::exp(-x));
    if constexpr (function == F::leaky_relu) return x > T(0) ? x : a * x;
    if constexpr (function == F::elu) return x > T(0) ? b * x : a * b * std::expm1(x);
    if constexpr (function == F::celu) return x > T(0) ? x : a * std::expm1(x / a);
    if constexpr (function == F::gelu) return x < -limit<T> ? T(0) : x * normal(x);
    if constexpr (function == F::gelu_tanh) return x < -limit<T> ? T(0) : x * logistic(twice_u(x));
    if constexpr (function == F::softplus) return (x > T(0) ? x : T(0)) + std::log1p(std::exp(-std::abs(x)));
    if constexpr (function == F::mish) return x < -limit<T> ? T(0) : x * Mish<T>(x).factor();
    if constexpr (function == F::exp) return std::exp(x);
    if constexpr (function == F::log) return std::log(x);
    if constexpr (function == F::sqrt) return std::sqrt(x);
    if constexpr (function == F::abs) return std::abs(x);
    if constexpr (function == F::pow) return a == T(2) ? x * x : std::pow(x, a);
    if constexpr (function == F::relu) return clamp_at_zero(x);
  }

  __device__ T gradient(T v, T dy) const {
    using F = PointwiseFunction;
    // From y.
    if constexpr (function == F::sigmoid) return dy * (v * (T(1) - v));
    if constexpr (function == F::tanh) return dy * (T(1) - v * v);
    if constexpr (function == F::clip) return v > a && v < b ? dy : T(0);
    if constexpr (function == F::hard_sigmoid) return v > T(0) && v < T(1) ? a * dy : T(0);
    if constexpr (function == F::leaky_relu) return v > T(0) ? dy : a * dy;
    if constexpr (function == F::elu) return dy * (v > T(0) ? b : v + a * b);
    if constexpr (function == F::celu) return v > T(0) ? dy : dy * (v / a + T(1));
    if constexpr (function == F::softplus) return dy * -std::expm1(-v);
    if constexpr (function == F::exp) return dy * v;
    if constexpr (function == F::sqrt) return dy / (T(2) * v);
    if constexpr (function == F::relu) return v > T(0) ? dy : T(0);
    // From x.
    if constexpr (function == F::hard_swish) return v <= T(-3) ? T(0) : v >= T(3) ? dy : dy * (v * T(1.0 / 3) + T(0.5));
    if constexpr (function == F::silu) {
      const T x = within(v), s = logistic(x);
      return dy * (s * (T(1) + x * (T(1) - s)));
    }
    if constexpr (function == F::gelu) {
      const T x = within(v);
      return dy * (normal(x) + x * std::exp(x * x * T(-0.5)) * T(0.39894228040143267794));  // 1 / sqrt(2 pi)
    }
    if constexpr (function == F::gelu_tanh) {
      const T x = within(v), s = logistic(twice_u(x));
      return dy * (s + x * (s * (T(1) - s)) * (T(linear) + T(3 * cubic) * x * x));
    }
    if constexpr (function == F::mish) return dy * Mish<T>(within(v)).slope(within(v));
    if constexpr (function == F::log) return dy / v;
    if constexpr (function == F::abs) return v > T(0) ? dy : v < T(0) ? -dy : T(0);
    if constexpr (function == F::pow) return dy * (a == T(2) ? T(2) * v : a * std::pow(v, a - T(1)));
  }
};

constexpr auto all = std::make_integer_sequence<int, PointwiseFunction::none>();

/// Calls use(std::integral_constant) of the name. The comparisons become one jump by a table.
template <class Use, int... i>
__device__ void dispatch(PointwiseFunction::Name name, const Use& use, std::integer_sequence<int, i...>) {
  const auto take = [&](auto its) {
    if (name != its.value) return false;
    use(its);
    return true;
  };
  (take(std::integral_constant<PointwiseFunction::Name, static_cast<PointwiseFunction::Name>(i)>()) || ...);
}

}  // namespace functions

// The value and the gradient of a function that is chosen at run time: all threads take one branch. Neither is inlined,
// so that a kernel has the code of all functions once.
template <class T>
__attribute__((noinline)) __device__ T value_of(PointwiseFunction::Name name, T a, T b, T x) {
  T y = x;
  functions::dispatch(
      name,
      [&](auto its) {
        y = functions::Of<decltype(its)::value, T>{a, b}.value(x);
      },
      functions::all);
  return y;
}
template <class T>
__attribute__((noinline)) __device__ T gradient_of(PointwiseFunction::Name name, T a, T b, T v, T dy) {
  T dx = dy;
  functions::dispatch(
      name,
      [&](auto its) {
        dx = functions::Of<decltype(its)::value, T>{a, b}.gradient(v, dy);
      },
      functions::all);
  return dx;
}

/// ReLU, or nothing.
template <class T>
struct MaybeRelu {
  bool on;
  __device__ T value(T x) const { return on ? clamp_at_zero(x) : x; }
  __device__ T gradient(T y, T dy) const { return !on || y > T(0) ? dy : T(0); }
};

/// Any function, with its numbers in the type that kernels compute in.
template <class T>
struct AnyFunction {
  PointwiseFunction::Name name;
  bool reads_x;
  T a, b;
  explicit AnyFunction(const PointwiseFunction& f)
      : name(f.name), reads_x(f.reads_x), a(static_cast<T>(f.a)), b(static_cast<T>(f.b)) {}
  __device__ T value(T x) const { return value_of(name, a, b, x); }
  __device__ T gradient(T v, T dy) const { return gradient_of(name, a, b, v, dy); }
  /// The gradient from x alone.
  __device__ T gradient_at(T x, T dy) const { return gradient(reads_x ? x : value(x), dy); }
};

/// Calls use(MaybeRelu) or use(AnyFunction): a kernel with ReLU has no calls.
template <class T, class Use>
void with_ending(const PointwiseFunction& f, const Use& use) {
  if (f.name == PointwiseFunction::none || f.name == PointwiseFunction::relu)
    return use(MaybeRelu<Computed<T>>{f.name == PointwiseFunction::relu});
  use(AnyFunction<Computed<T>>(f));
}

}  // namespace lamina::LAMINA_CUDA_SPACE
