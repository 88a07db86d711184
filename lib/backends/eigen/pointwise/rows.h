#pragma once
// Ops whose y is one function of x, element by element: ReLU, sigmoid, tanh, clip, hard sigmoid, hard swish, SiLU. Each
// is an object of functions of rows, for its own op and for ops that it follows in one unit.

#include <memory>
#include <variant>

#include "lib/backends/eigen/half/elements.h"
#include "lib/backends/eigen/micro_kernels/activation_kernels.h"
#include "lib/backends/eigen/micro_kernels/epilogue.h"

namespace lamina::eigen {

/// The value, beside dy, from which a gradient is computed.
enum class Reads { x, y };

/// dx = gradient(v, dy), or dx += with `adds`.
template <bool adds, class T, class Gradient>
void put_gradient(T* dx, const T* v, const T* dy, std::int64_t count,
                  const Gradient gradient) {  // a copy: see ByElement
  LAMINA_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) {
    const T d = gradient(v[i], dy[i]);
    dx[i] = adds ? dx[i] + d : d;
  }
}

/// An op by functions of one element: y = value(x), dx = gradient(v, dy), where v is x or y. Loops use copies of them:
/// stores cannot change the constants of a copy, so these stay in registers.
template <class Value, class Gradient>
struct ByElement {
  Reads reads;
  Value value;
  Gradient gradient;

  template <class T>
  void forward(T* y, const T* x, std::int64_t count) const {
    const Value of = value;
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) y[i] = of(x[i]);
  }
  template <bool adds, class T>
  void backward(T* dx, const T* v, const T* dy, std::int64_t count) const {
    put_gradient<adds>(dx, v, dy, count, gradient);
  }
};
template <class Value, class Gradient>
ByElement(Reads, Value, Gradient) -> ByElement<Value, Gradient>;

/// An op whose y is a function of the instruction set's table, `map`, and whose gradient is a function of y.
template <class Map, class Gradient>
struct ByMap {
  static constexpr Reads reads = Reads::y;
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
  static constexpr Reads reads = Reads::x;
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

// A NaN is not below, above or equal to anything, and so stays in each y.

inline auto rows_of(const Relu&, const InstructionSet&) {
  return ByElement{Reads::y, [](auto x) { return x <= 0 ? 0 : x; }, [](auto y, auto dy) { return y > 0 ? dy : 0; }};
}

inline auto rows_of(const Sigmoid&, const InstructionSet& set) {
  return ByMap{set, [](const auto& kernels) { return kernels.logistic; },
               [](auto y, auto dy) { return dy * (y * (1 - y)); }};
}

inline auto rows_of(const Tanh&, const InstructionSet& set) {
  return ByMap{set, [](const auto& kernels) { return kernels.tanh; }, [](auto y, auto dy) { return dy * (1 - y * y); }};
}

inline auto rows_of(const Clip& op, const InstructionSet&) {
  const auto value = [op]<class T>(T x) {
    const T low = static_cast<T>(op.low), high = static_cast<T>(op.high);
    return x < low ? low : x > high ? high : x;
  };
  const auto gradient = [op]<class T>(T y, T dy) {
    // Both comparisons are made: a branch between them is not vectorised, and would be mispredicted.
    return ((y > static_cast<T>(op.low)) & (y < static_cast<T>(op.high))) ? dy : T(0);
  };
  return ByElement{Reads::y, value, gradient};
}

inline auto rows_of(const HardSigmoid& op, const InstructionSet&) {
  const auto value = [op]<class T>(T x) {
    const T y = multiply_add(static_cast<T>(op.alpha), x, static_cast<T>(op.beta));
    return y < 0 ? T(0) : y > 1 ? T(1) : y;
  };
  const auto gradient = [op]<class T>(T y, T dy) { return ((y > 0) & (y < 1)) ? static_cast<T>(op.alpha) * dy : T(0); };
  return ByElement{Reads::y, value, gradient};
}

// HardSwish falls and rises, so x does not follow from y.
inline auto rows_of(const HardSwish&, const InstructionSet&) {
  const auto value = []<class T>(T x) {
    return x <= -3 ? T(0) : x >= 3 ? x : x * multiply_add(x, static_cast<T>(1.0 / 6), T(0.5));
  };
  const auto gradient = []<class T>(T x, T dy) {
    return x <= -3 ? T(0) : x >= 3 ? dy : dy * multiply_add(x, static_cast<T>(1.0 / 3), T(0.5));
  };
  return ByElement{Reads::x, value, gradient};
}

inline auto rows_of(const Silu&, const InstructionSet& set) { return SiluRows{set}; }

/// The function of an op that follows another one in its unit.
template <class T, class Rows>
class ActivationByRows final : public Activation<T> {
 public:
  explicit ActivationByRows(const Rows& rows) : rows_(rows) {}
  void forward(T* y, const T* x, std::int64_t count) const override { rows_.forward(y, x, count); }
  void backward(T* dx, const T* x, const T* dy, std::int64_t count) const override {
    if (rows_.reads == Reads::x) return rows_.template backward<false>(dx, x, dy, count);
    Room<T> y;
    rows_.forward(y.elements, x, count);
    rows_.template backward<false>(dx, y.elements, dy, count);
  }

 private:
  Rows rows_;
};

/// The function of an op that is pointwise.
template <class T>
std::shared_ptr<const Activation<T>> activation(const Op& op, const InstructionSet& set) {
  return std::visit(
      [&](const auto& its) -> std::shared_ptr<const Activation<T>> {
        if constexpr (requires { rows_of(its, set); })
          return std::make_shared<ActivationByRows<T, decltype(rows_of(its, set))>>(rows_of(its, set));
        return nullptr;
      },
      op);
}

}  // namespace lamina::eigen
