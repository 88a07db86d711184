// y = function(a, b) of two tensors. Either tensor may be repeated along an axis. A run is the innermost axis: along it
// an operand has neighbouring elements, or one element that repeats.

#include "lib/core/units/binary.h"

#include "lib/backends/eigen/half/elements.h"

namespace lamina::eigen {
namespace {

using F = BinaryFunction;
using AllAxes = std::vector<BinaryAxis>;

constexpr std::int64_t at_once = 2048;      // elements; they stay in cache for both gradients
constexpr std::int64_t sums_at_once = 512;  // sums of a thread, side by side

/// The elements of an operand along a run. An operand that repeats is read once.
template <class T, bool Repeats>
struct RunOf {
  const T* from;
  T first;
  explicit RunOf(const T* at) : from(at), first(Repeats ? *at : T(0)) {}
  T operator[](std::int64_t i) const { return Repeats ? first : from[i]; }
};

/// Calls use(operand) with the elements along a run; an operand that is not used has none.
template <bool used, class T, class Use>
void with_run(const T* operand, std::int64_t at, bool repeats, const Use& use) {
  if constexpr (used)
    with_flag(repeats, [&](auto its) { use(RunOf<T, its>(operand + at)); });
  else
    use(RunOf<T, false>(nullptr));
}

template <F function, class T>
T value(T a, T b) {
  if constexpr (function == F::add) return a + b;
  if constexpr (function == F::subtract) return a - b;
  if constexpr (function == F::multiply) return a * b;
  if constexpr (function == F::divide) return a / b;
  if constexpr (function == F::maximum) return a > b || a != a ? a : b;
  if constexpr (function == F::minimum) return a < b || a != a ? a : b;
}

/// The gradient of operand `of`, at element i of a run.
template <F function, int of, class T, class A, class B>
T gradient(T dy, const A& a, const B& b, std::int64_t i) {
  if constexpr (function == F::add) return dy;
  if constexpr (function == F::subtract) return of == 0 ? dy : -dy;
  if constexpr (function == F::multiply && of == 0) return dy * b[i];
  if constexpr (function == F::multiply && of == 1) return dy * a[i];
  if constexpr (function == F::divide && of == 0) return dy / b[i];
  if constexpr (function == F::divide && of == 1) return -dy * (a[i] / b[i] / b[i]);
  if constexpr (function == F::maximum || function == F::minimum) {
    const bool loses = (function == F::maximum) == (of == 0) ? a[i] < b[i] : a[i] > b[i];
    return loses ? T(0) : a[i] == b[i] ? dy / 2 : dy;
  }
}

/// The operands and results of one image.
template <class T>
struct Image {
  std::int64_t n;
  const T *a, *b, *dy;
  Output<T> y, dx[2];

  Image(const Args& args, std::int64_t image, const std::array<bool, 2>& adds, std::int64_t run)
      : n(image),
        a(start(args.x[0], n)),
        b(start(args.x[1], n)),
        dy(start(args.dy, n)),
        y(args.y, false, {&args.x[0], &args.x[1]}, run),
        dx{gradient_of(args, 0, adds[0], run), gradient_of(args, 1, adds[1], run)} {}

  static Output<T> gradient_of(const Args& args, std::size_t k, bool adds, std::int64_t run) {
    return {wanted(args, k) ? args.dx[k] : Tensor{}, adds, {&args.dy, &args.x[0], &args.x[1]}, run};
  }

  static const T* start(const Tensor& tensor, std::int64_t n) { return tensor ? image<const T>(tensor, n) : nullptr; }

  /// Calls use(a, b) with the operands along a run of these steps from `at` on. `of`: the operand whose gradient is
  /// computed, or -1 for y.
  template <F function, int of, class Use>
  void along(const BinarySteps& steps, const BinarySteps& at, const Use& use) const {
    constexpr bool uses_a = of < 0 || gradient_reads(function, of, 0),
                   uses_b = of < 0 || gradient_reads(function, of, 1);
    with_run<uses_a>(a, at[0], steps[0] == 0, [&]<bool a_repeats>(const RunOf<T, a_repeats>& of_a) {
      // No axis is repeated by both (binary_axes).
      if constexpr (a_repeats && uses_b)
        use(of_a, RunOf<T, false>(b + at[1]));
      else
        with_run<uses_b>(b, at[1], steps[1] == 0, [&](const auto& of_b) { use(of_a, of_b); });
    });
  }
};

BinarySteps plus(BinarySteps at, const BinarySteps& by, std::int64_t times = 1) {
  for (std::size_t k = 0; k < at.size(); ++k) at[k] += times * by[k];
  return at;
}

/// Calls work(image, place, count) for parts of runs that cover y, or dy, once.
template <class T, class Work>
void split_runs(ThreadPool& pool, const Shape& y, const Args& args, const AllAxes& axes,
                const std::array<bool, 2>& adds, const Work& work) {
  const BinaryAxis run = axes.back();
  const auto outer = std::span(axes).first(axes.size() - 1);
  split_images(pool, y, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    Image<T> its(args, n, adds, run.extent);
    std::int64_t index = first / run.extent, within = first - index * run.extent;
    while (first < last) {
      const std::int64_t count = std::min({last - first, run.extent - within, at_once});
      work(its, plus(place_at(outer, index), run.steps, within), count);
      first += count;
      within += count;
      if (within == run.extent) within = 0, ++index;
    }
  });
}

template <F function, class T>
void forward(ThreadPool& pool, const Args& args, const AllAxes& axes) {
  const BinarySteps steps = axes.back().steps;
  split_runs<T>(pool, args.y.shape, args, axes, {}, [&](Image<T>& its, const BinarySteps& at, std::int64_t count) {
    its.template along<function, -1>(steps, at, [&](const auto& a, const auto& b) {
      write_each(its.y, its.n * args.y.pitch + at[2], count, false,
                 [=](std::int64_t i) { return value<function, T>(a[i], b[i]); });
    });
  });
}

/// The axes along which an operand has elements, and the axes along which it repeats.
struct Split {
  AllAxes kept, repeats;

  Split(const AllAxes& axes, std::size_t of) {
    for (const BinaryAxis& axis : axes) (axis.steps[of] == 0 ? repeats : kept).push_back(axis);
  }
};

/// The gradients of one op. An operand that does not repeat has its gradient written along runs. The gradient of an
/// operand that repeats is a sum, in a fixed order: over runs, or over places whose runs lie side by side.
template <F function, class T>
struct Backward {
  ThreadPool& pool;
  const Args& args;
  const AllAxes& axes;
  const std::array<Split, 2>& split;  ///< axes, by operand
  const std::array<bool, 2>& adds;

  bool fills[2] = {is_written(0), is_written(1)};  ///< whether the gradient is wanted, and is no sum
  bool first_last = fills[0] && same_place(args.dx[0], args.dy);

  bool is_written(std::size_t k) const { return wanted(args, k) && args.dx[k].shape == args.dy.shape; }

  template <int of>
  void write(Image<T>& its, const BinarySteps& at, std::int64_t count) const {
    its.template along<function, of>(axes.back().steps, at, [&](const auto& a, const auto& b) {
      write_each(its.dx[of], its.n * args.dx[of].pitch + at[of], count, adds[of],
                 [=, dy = its.dy + at[2]](std::int64_t i) { return gradient<function, of, T>(dy[i], a, b, i); });
    });
  }

  /// Writes the gradients of the operands that do not repeat. A gradient in dy's memory comes last.
  void write_all(Image<T>& its, const BinarySteps& at, std::int64_t count) const {
    if (fills[0] && !first_last) write<0>(its, at, count);
    if (fills[1]) write<1>(its, at, count);
    if (first_last) write<0>(its, at, count);
  }

  template <int of>
  double sum_of_run(const Image<T>& its, const BinarySteps& at) const {
    double sum = 0;
    its.template along<function, of>(axes.back().steps, at, [&](const auto& a, const auto& b) {
      const T* const dy = its.dy + at[2];
      sum = interleaved_sum<T>(axes.back().extent,
                               [&](std::int64_t i) { return gradient<function, of, T>(dy[i], a, b, i); });
    });
    return sum;
  }

  /// Sums the gradient of each element of an operand that repeats along runs. With `all` the other gradient follows.
  template <int of>
  void sum_runs(bool all) const {
    const AllAxes& kept = split[of].kept;
    const auto repeats = std::span(split[of].repeats).first(split[of].repeats.size() - 1);
    const std::int64_t elements = places_along(kept), runs = places_along(repeats);
    pool.split(args.dy.shape.n * elements, 1, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t n = from / elements, k = from - n * elements; from < to; ++n, k = 0) {
        Image<T> its(args, n, adds, axes.back().extent);
        for (; k < elements && from < to; ++k, ++from) {
          const BinarySteps at = place_at(kept, k);
          double sum = 0;
          for (std::int64_t i = 0; i < runs; ++i) {
            const BinarySteps here = plus(at, place_at(repeats, i));
            sum += sum_of_run<of>(its, here);
            if (all) write_all(its, here, axes.back().extent);
          }
          T& dx = image<T>(args.dx[of], n)[at[of]];
          dx = adds[of] ? dx + static_cast<T>(sum) : static_cast<T>(sum);
        }
      }
    });
  }

  /// The same, with sums side by side, for an operand that has neighbouring elements along runs.
  template <int of>
  void sum_columns(bool all) const {
    const AllAxes& repeats = split[of].repeats;
    const BinaryAxis run = split[of].kept.back();
    const auto kept = std::span(split[of].kept).first(split[of].kept.size() - 1);
    const std::int64_t runs = places_along(kept), terms = places_along(repeats);
    const std::int64_t parts = divide_up(run.extent, sums_at_once), of_image = runs * parts;
    pool.each(args.dy.shape.n * of_image, 1, [&](std::int64_t i) {
      Image<T> its(args, i / of_image, adds, run.extent);
      const std::int64_t first = i % parts * sums_at_once, count = std::min(sums_at_once, run.extent - first);
      const BinarySteps at = plus(place_at(kept, i % of_image / parts), run.steps, first);
      double sums[sums_at_once] = {};
      for (std::int64_t k = 0; k < terms; ++k) {
        const BinarySteps here = plus(at, place_at(repeats, k));
        its.template along<function, of>(run.steps, here, [&](const auto& a, const auto& b) {
          put_each(sums, count, true, [=, dy = its.dy + here[2]](std::int64_t j) {
            return static_cast<double>(gradient<function, of, T>(dy[j], a, b, j));
          });
        });
        if (all) write_all(its, here, count);
      }
      put_each(image<T>(args.dx[of], its.n) + at[of], count, adds[of],
               [&](std::int64_t j) { return static_cast<T>(sums[j]); });
    });
  }

  /// Sums the gradient of an operand that repeats. If every thread has a sum, also writes the other gradient in this
  /// pass, and returns true.
  template <int of>
  bool sum() const {
    if (!wanted(args, of) || fills[of]) return false;
    const bool in_runs = axes.back().steps[of] == 0;
    const std::int64_t places = args.dy.shape.n * places_along(split[of].kept), run = axes.back().extent;
    const std::int64_t parts = in_runs ? places : places / run * divide_up(run, sums_at_once);
    const bool all = fills[1 - of] && parts >= pool.threads();
    in_runs ? sum_runs<of>(all) : sum_columns<of>(all);
    return all;
  }

  void run() const {
    const bool with_a = sum<0>(), with_b = sum<1>();
    if (with_a || with_b || (!fills[0] && !fills[1])) return;
    split_runs<T>(pool, args.dy.shape, args, axes, adds,
                  [&](Image<T>& its, const BinarySteps& at, std::int64_t count) { write_all(its, at, count); });
  }
};

/// Calls use.template operator()<function>().
template <class Use>
Lowered with_function(F function, const Use& use) {
  switch (function) {
    case F::add: return use.template operator()<F::add>();
    case F::subtract: return use.template operator()<F::subtract>();
    case F::multiply: return use.template operator()<F::multiply>();
    case F::divide: return use.template operator()<F::divide>();
    case F::maximum: return use.template operator()<F::maximum>();
    case F::minimum: break;
  }
  return use.template operator()<F::minimum>();
}

}  // namespace

Lowered lower(const Binary& op, const Spec& spec, const Choice&, const Context& context) {
  return with_type(spec.y.dtype, [&]<class T>() {
    return with_function(op.function, [&]<F function>() {
      const AllAxes axes = binary_axes(spec.x[0].shape, spec.x[1].shape);
      return with_steps(
          binary_unit(spec), spec,
          [&pool = context.pool, axes](const Args& args) { forward<function, T>(pool, args, axes); },
          [&pool = context.pool, axes, split = std::array{Split(axes, 0), Split(axes, 1)},
           adds = std::array{adds_dx(spec, 0), adds_dx(spec, 1)}](const Args& args) {
            Backward<function, T>{pool, args, axes, split, adds}.run();
          });
    });
  });
}

}  // namespace lamina::eigen
