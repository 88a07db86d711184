// Ops whose y is one function of x, element by element: ReLU, sigmoid, tanh, clip, hard sigmoid, hard swish, SiLU.

#include "lib/backends/eigen/micro_kernels/activation_kernels.h"
#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {
namespace {

/// The value, beside dy, from which a gradient is computed.
enum class Reads { x, y };

/// dx = gradient(v, dy), or dx += with `adds`.
template <bool adds, class T, class Gradient>
void put_gradient(T* dx, const T* v, const T* dy, std::int64_t count, const Gradient& gradient) {
  LAMINA_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const T d = gradient(v[i], dy[i]);
    dx[i] = adds ? dx[i] + d : d;
  }
}

/// An op by functions of one element: y = value(x), dx = gradient(v, dy), where v is x or y.
template <class Value, class Gradient>
struct ByElement {
  Value value;
  Gradient gradient;

  template <class T>
  void forward(T* y, const T* x, std::int64_t count) const {
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) y[i] = value(x[i]);
  }
  template <bool adds, class T>
  void backward(T* dx, const T* v, const T* dy, std::int64_t count) const {
    put_gradient<adds>(dx, v, dy, count, gradient);
  }
};
template <class Value, class Gradient>
ByElement(Value, Gradient) -> ByElement<Value, Gradient>;

/// An op whose y is a function of the instruction set's table, `map`, and whose gradient is a function of y.
template <class Map, class Gradient>
struct ByMap {
  const InstructionSet& set;
  Map map;
  Gradient gradient;

  template <class T>
  void forward(T* y, const T* x, std::int64_t count) const {
    map(set.kernels<T>().activations)(y, x, count);
  }
  template <bool adds, class T>
  void backward(T* dx, const T* y, const T* dy, std::int64_t count) const {
    put_gradient<adds>(dx, y, dy, count, gradient);
  }
};
template <class Map, class Gradient>
ByMap(const InstructionSet&, Map, Gradient) -> ByMap<Map, Gradient>;

/// SiLU: y and the slope of x are functions of the instruction set.
struct SiluRows {
  const InstructionSet& set;

  template <class T>
  void forward(T* y, const T* x, std::int64_t count) const {
    set.kernels<T>().activations.silu(y, x, count);
  }
  template <bool adds, class T>
  void backward(T* dx, const T* x, const T* dy, std::int64_t count) const {
    constexpr std::int64_t run = 1024;  // elements, in cache between the two loops
    T slopes[run];
    for (std::int64_t at = 0; at < count; at += run) {
      const std::int64_t some = std::min(run, count - at);
      set.kernels<T>().activations.silu_slope(slopes, x + at, some);
      put_gradient<adds>(dx + at, slopes, dy + at, some, [](T slope, T d) { return slope * d; });
    }
  }
};

/// The unit of a pointwise op; it may work in place.
template <class Rows>
Lowered lower_pointwise(const Spec& spec, ThreadPool& pool, Reads reads, const Rows& rows) {
  Lowered unit = in_place_unit(spec);
  unit.backward_reads_x[0] = reads == Reads::x;
  unit.backward_reads_y = reads == Reads::y;
  with_type(spec.y.dtype, [&]<class T>() {
    const auto forward = [&pool, rows](const Args& args) {
      split_images(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
        rows.forward(image<T>(args.y, n) + first, image<const T>(args.x[0], n) + first, last - first);
      });
    };
    add_steps(unit, spec, forward, [&pool, rows, reads, adds = adds_dx(spec, 0)](const Args& args) {
      if (!wanted(args, 0)) return;
      with_flag(adds, [&](auto add) {
        split_images(pool, args.dy.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
          const T* const v = image<const T>(reads == Reads::x ? args.x[0] : args.y, n);
          rows.template backward<add>(image<T>(args.dx[0], n) + first, v + first, image<const T>(args.dy, n) + first,
                                      last - first);
        });
      });
    });
  });
  return unit;
}

}  // namespace

// A NaN is not below, above or equal to anything, and so stays in each y.

Lowered lower(const Relu&, const Spec& spec, const Choice&, const Context& context) {
  return lower_pointwise(
      spec, context.pool, Reads::y,
      ByElement{[](auto x) { return x <= 0 ? 0 : x; }, [](auto y, auto dy) { return y > 0 ? dy : 0; }});
}

Lowered lower(const Sigmoid&, const Spec& spec, const Choice&, const Context& context) {
  return lower_pointwise(spec, context.pool, Reads::y,
                         ByMap{context.set, [](const auto& kernels) { return kernels.logistic; },
                               [](auto y, auto dy) { return dy * (y * (1 - y)); }});
}

Lowered lower(const Tanh&, const Spec& spec, const Choice&, const Context& context) {
  return lower_pointwise(spec, context.pool, Reads::y,
                         ByMap{context.set, [](const auto& kernels) { return kernels.tanh; },
                               [](auto y, auto dy) { return dy * (1 - y * y); }});
}

Lowered lower(const Clip& op, const Spec& spec, const Choice&, const Context& context) {
  const auto value = [op]<class T>(T x) {
    const T low = static_cast<T>(op.low), high = static_cast<T>(op.high);
    return x < low ? low : x > high ? high : x;
  };
  const auto gradient = [op]<class T>(T y, T dy) {
    return y > static_cast<T>(op.low) && y < static_cast<T>(op.high) ? dy : T(0);
  };
  return lower_pointwise(spec, context.pool, Reads::y, ByElement{value, gradient});
}

Lowered lower(const HardSigmoid& op, const Spec& spec, const Choice&, const Context& context) {
  const auto value = [op]<class T>(T x) {
    const T y = multiply_add(static_cast<T>(op.alpha), x, static_cast<T>(op.beta));
    return y < 0 ? T(0) : y > 1 ? T(1) : y;
  };
  const auto gradient = [op]<class T>(T y, T dy) { return y > 0 && y < 1 ? static_cast<T>(op.alpha) * dy : T(0); };
  return lower_pointwise(spec, context.pool, Reads::y, ByElement{value, gradient});
}

// HardSwish falls and rises, so x does not follow from y.
Lowered lower(const HardSwish&, const Spec& spec, const Choice&, const Context& context) {
  const auto value = []<class T>(T x) {
    return x <= -3 ? T(0) : x >= 3 ? x : x * multiply_add(x, static_cast<T>(1.0 / 6), T(0.5));
  };
  const auto gradient = []<class T>(T x, T dy) {
    return x <= -3 ? T(0) : x >= 3 ? dy : dy * multiply_add(x, static_cast<T>(1.0 / 3), T(0.5));
  };
  return lower_pointwise(spec, context.pool, Reads::x, ByElement{value, gradient});
}

Lowered lower(const Silu&, const Spec& spec, const Choice&, const Context& context) {
  return lower_pointwise(spec, context.pool, Reads::x, SiluRows{context.set});
}

}  // namespace lamina::eigen
