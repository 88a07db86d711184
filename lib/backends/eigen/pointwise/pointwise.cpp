// Ops whose y is one function of x, element by element: ReLU and Pointwise.

#include <Eigen/Core>
#include <cmath>
#include <type_traits>

#include "activation.h"
#include "lib/backends/eigen/half/elements.h"
#include "lib/core/units/functions.h"

namespace lamina::eigen {
namespace {

/// A function made of two parts. `Value` is a function of one element, y = value(x), or of rows, value(y, x, count).
/// `Gradient` is a function of one element, dx = gradient(v, dy), where v is x or y, or it writes the slopes of rows,
/// gradient(slopes, v, count).
template <class T, class Value, class Gradient>
class ActivationOfParts final : public Activation<T> {
 public:
  ActivationOfParts(bool reads_x, const Value& value, const Gradient& gradient)
      : reads_x_(reads_x), value_(value), gradient_(gradient) {}

  void forward(T* y, const T* x, std::int64_t count) const override {
    if constexpr (std::is_invocable_v<Value, T>) {
      put_each(y, count, false, [x, value = value_](std::int64_t i) { return value(x[i]); });
    } else {
      value_(y, x, count);
    }
  }

  void gradient(T* dx, const T* v, const T* dy, std::int64_t count, bool adds) const override {
    if constexpr (std::is_invocable_v<Gradient, T, T>) {
      put_each(dx, count, adds, [v, dy, of = gradient_](std::int64_t i) { return of(v[i], dy[i]); });
    } else {
      Room<T> slopes;
      for (std::int64_t at = 0; at < count; at += elements_of_room) {
        const std::int64_t some = std::min(elements_of_room, count - at);
        gradient_(slopes.elements, v + at, some);
        put_each(dx + at, some, adds, [&slopes, d = dy + at](std::int64_t i) { return slopes.elements[i] * d[i]; });
      }
    }
  }

  void backward(T* dx, const T* x, const T* dy, std::int64_t count) const override {
    if (reads_x_) return gradient(dx, x, dy, count, false);
    Room<T> y;
    forward(y.elements, x, count);
    gradient(dx, y.elements, dy, count, false);
  }

 private:
  bool reads_x_;
  Value value_;
  Gradient gradient_;
};

/// Makes a function of rows from a function of Eigen's arrays. The arrays have a fixed size, so that an element has the
/// same bits in any place.
template <class T, class Of>
auto by_arrays(const Of& of) {
  return [of](T* to, const T* from, std::int64_t count) {
    constexpr std::int64_t size = 64;
    using Numbers = Eigen::Array<T, size, 1>;
    std::int64_t at = 0;
    for (; at + size <= count; at += size) Eigen::Map<Numbers>(to + at) = of(Eigen::Map<const Numbers>(from + at));
    if (at == count) return;
    Numbers rest = Numbers::Ones();
    std::copy(from + at, from + count, rest.data());
    rest = of(rest).eval();
    std::copy_n(rest.data(), count - at, to + at);
  };
}

/// Makes the function of rows y = factor x^a, for a that is not 0. For f32 it computes in f64.
template <class T>
auto power(double a, double factor, const InstructionSet& set) {
  if constexpr (std::is_same_v<T, double>) {
    return by_arrays<T>([a, factor](const auto& x) { return factor * x.pow(a); });
  } else {
    return [a, factor, kernel = set.of<double>().kernels.activations.power](T* y, const T* x, std::int64_t count) {
      Room<double> room;
      double* const wide = room.elements;
      for (std::int64_t at = 0; at < count; at += elements_of_room) {
        const std::int64_t some = std::min(elements_of_room, count - at);
        std::copy_n(x + at, some, wide);
        kernel(wide, some, a, factor);
        for (std::int64_t i = 0; i < some; ++i) y[at + i] = static_cast<T>(wide[i]);
      }
    };
  }
}

/// y = above x for x > 0, else y = below (exp(rate x) - 1).
template <class T>
struct Elu {
  decltype(ActivationKernels<T>::less_one) less_one;
  T above, below, rate;

  void operator()(T* y, const T* x, std::int64_t count) const {
    Room<T> room;
    T* const less = room.elements;
    const T up = above, down = below, speed = rate;
    for (std::int64_t at = 0; at < count; at += elements_of_room, x += elements_of_room, y += elements_of_room) {
      const std::int64_t some = std::min(elements_of_room, count - at);
      for (std::int64_t i = 0; i < some; ++i) less[i] = speed * x[i];
      less_one(less, less, some);
      LAMINA_INDEPENDENT
      for (std::int64_t i = 0; i < some; ++i) y[i] = x[i] > 0 ? up * x[i] : down * less[i];
    }
  }
  /// The gradient, from y, which is below (exp(rate x) - 1) for x <= 0.
  T operator()(T y, T dy) const { return dy * (y > 0 ? above : rate * (y + below)); }
};

template <class T, class Value, class Gradient>
std::shared_ptr<const Activation<T>> of_parts(bool reads_x, const Value& value, const Gradient& gradient) {
  return std::make_shared<ActivationOfParts<T, Value, Gradient>>(reads_x, value, gradient);
}

template <class T>
std::shared_ptr<const Activation<T>> function_of(const Pointwise& op, const InstructionSet& set) {
  const auto& kernels = set.of<T>().kernels.activations;
  const T a = static_cast<T>(op.a), b = static_cast<T>(op.b);
  const auto made = [reads_x = row_of(op.function).reads_x](const auto& value, const auto& gradient) {
    return of_parts<T>(reads_x, value, gradient);
  };
  const auto elu = [&](T above, T below, T rate) {
    const Elu<T> its{kernels.less_one, above, below, rate};
    return made(its, its);
  };
  // A NaN is not below, above or equal to anything, so it stays a NaN in each y.
  switch (op.function) {
    case Function::sigmoid: return made(kernels.logistic, [](T y, T dy) { return dy * (y * (1 - y)); });
    case Function::tanh: return made(kernels.tanh, [](T y, T dy) { return dy * (1 - y * y); });
    case Function::clip:
      // Both comparisons are made: a branch between them is not vectorised, and would be mispredicted.
      return made(Bounds<T>{a, b}, [a, b](T y, T dy) { return ((y > a) & (y < b)) ? dy : T(0); });
    case Function::hard_sigmoid:
      return made(
          [a, b](T x) {
            return Bounds<T>{0, 1}(multiply_add(a, x, b));
          },
          [a](T y, T dy) { return ((y > 0) & (y < 1)) ? a * dy : T(0); });
    case Function::hard_swish:
      return made(
          [](T x) { return x <= -3  ? T(0)
                           : x >= 3 ? x
                                    : x * multiply_add(x, static_cast<T>(1.0 / 6), T(0.5)); },
          [](T x, T dy) {
            return x <= -3 ? T(0) : x >= 3 ? dy : dy * multiply_add(x, static_cast<T>(1.0 / 3), T(0.5));
          });
    case Function::silu: return made(kernels.silu, kernels.silu_slope);
    case Function::leaky_relu:
      return made([a](T x) { return x > 0 ? x : a * x; }, [a](T y, T dy) { return y > 0 ? dy : a * dy; });
    case Function::elu: return elu(b, a * b, 1);
    case Function::celu: return elu(1, a, 1 / a);
    case Function::gelu: return made(kernels.gelu, kernels.gelu_slope);
    case Function::gelu_tanh: return made(kernels.gelu_tanh, kernels.gelu_tanh_slope);
    case Function::softplus: return made(kernels.softplus, kernels.softplus_slope);
    case Function::mish: return made(kernels.mish, kernels.mish_slope);
    case Function::exp: return made(kernels.exp, [](T y, T dy) { return dy * y; });
    case Function::log:
      return made(by_arrays<T>([](const auto& x) { return x.log(); }), [](T x, T dy) { return dy / x; });
    case Function::sqrt: return made([](T x) { return std::sqrt(x); }, [](T y, T dy) { return dy / (2 * y); });
    case Function::abs:
      return made([](T x) { return std::abs(x); }, [](T x, T dy) { return x > 0 ? dy : x < 0 ? -dy : T(0); });
    case Function::pow:
      if (a == 1) return made([](T x) { return x; }, [](T, T dy) { return dy; });
      if (op.a == 2) return made([](T x) { return x * x; }, [](T x, T dy) { return 2 * x * dy; });
      if (op.a == 3) return made([](T x) { return x * x * x; }, [](T x, T dy) { return 3 * x * x * dy; });
      if (op.a == 0.5) return made([](T x) { return std::sqrt(x); }, [](T x, T dy) { return dy / (2 * std::sqrt(x)); });
      if (op.a == -1) return made([](T x) { return 1 / x; }, [](T x, T dy) { return -dy / x / x; });
      return made(power<T>(a, 1, set), power<T>(double{a} - 1, a, set));
  }
  return nullptr;
}

Lowered lower_function(const Spec& spec, const Context& context) {
  Lowered unit = pointwise_unit(spec);
  return with_type(spec.y.dtype, [&]<class T>() {
    ThreadPool& pool = context.pool;
    const auto function = activation<T>(spec.op, context.set);
    const auto forward = [&pool, function](const Args& args) {
      split_images(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
        const T* const x = image<const T>(args.x[0], n) + first;
        Output<T> y(args.y, false, {&args.x[0]});
        write_chunks(y, n * args.y.pitch + first, last - first, false,
                     [&](T* to, std::int64_t i, std::int64_t some) { function->forward(to, x + i, some); });
      });
    };
    const bool reads_x = unit.backward_reads_x[0], adds = adds_dx(spec, 0);
    return with_steps(unit, spec, forward, [&pool, function, reads_x, adds](const Args& args) {
      if (!wanted(args, 0)) return;
      split_images(pool, args.dy.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
        const Tensor& its = reads_x ? args.x[0] : args.y;
        const T *const v = image<const T>(its, n) + first, *const dy = image<const T>(args.dy, n) + first;
        Output<T> dx(args.dx[0], adds, {&args.dy, &its});
        write_chunks(
            dx, n * args.dx[0].pitch + first, last - first, adds,
            [&](T* to, std::int64_t i, std::int64_t some) { function->gradient(to, v + i, dy + i, some, adds); });
      });
    });
  });
}

}  // namespace

template <class T>
std::shared_ptr<const Activation<T>> activation(const Op& op, const InstructionSet& set) {
  if (const auto* const function = std::get_if<Pointwise>(&op)) return function_of<T>(*function, set);
  if (!std::holds_alternative<Relu>(op)) return nullptr;
  return of_parts<T>(
      false, [](T x) { return x <= 0 ? T(0) : x; }, [](T y, T dy) { return y > 0 ? dy : T(0); });
}
template std::shared_ptr<const Activation<float>> activation(const Op&, const InstructionSet&);
template std::shared_ptr<const Activation<double>> activation(const Op&, const InstructionSet&);

Lowered lower(const Relu&, const Spec& spec, const Choice&, const Context& context) {
  return lower_function(spec, context);
}
Lowered lower(const Pointwise&, const Spec& spec, const Choice&, const Context& context) {
  return lower_function(spec, context);
}

}  // namespace lamina::eigen
