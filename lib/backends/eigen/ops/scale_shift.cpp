// ScaleShift, and PRelu, which scales elements that are not above 0. There is a scale (and a shift) for each channel,
// or one for all.

#include "lib/backends/eigen/half/elements.h"
#include "lib/backends/eigen/runtime/lanes.h"

namespace lamina::eigen {
namespace {

/// to = value(i, scale, shift), or +=, for each element i of an image, where value = of(image). A run of elements has
/// one scale and one shift. A null shift is 0.
template <class T, class Of>
void put_runs(ThreadPool& pool, const Tensor& to, std::initializer_list<const Tensor*> reads, const T* scales,
              const T* shifts, std::int64_t run, bool adds, const Of& of) {
  split_images(pool, to.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    Output<T> y(to, adds, reads, run > 1 ? run : last - first);
    const auto value = of(n);
    with_flag(run == 1, [&](auto own) {
      for (std::int64_t at = first, end = 0; at < last; at = end) {
        end = own ? last : std::min(last, (at / run + 1) * run);
        const T scale = scales[at / run], shift = shifts == nullptr ? T(0) : shifts[at / run];
        write_each(y, n * to.pitch + at, end - at, adds, [=](std::int64_t i) {
          if (!own) return value(at + i, scale, shift);
          return value(at + i, scales[at + i], shifts == nullptr ? T(0) : shifts[at + i]);
        });
      }
    });
  });
}

/// to = scale from + shift.
template <class T>
void put_scaled(ThreadPool& pool, const Tensor& to, const Tensor& from, const T* scales, const T* shifts,
                std::int64_t run, bool adds) {
  put_runs(pool, to, {&from}, scales, shifts, run, adds, [&](std::int64_t n) {
    return [x = image<const T>(from, n)](std::int64_t i, T scale, T shift) { return multiply_add(scale, x[i], shift); };
  });
}

/// to = from where x is above 0, else scale from.
template <class T>
void put_rectified(ThreadPool& pool, const Tensor& to, const Tensor& from, const Tensor& x, const T* scales,
                   std::int64_t run, bool adds) {
  put_runs<T>(pool, to, {&from, &x}, scales, nullptr, run, adds, [&](std::int64_t n) {
    return [value = image<const T>(from, n), of = image<const T>(x, n)](std::int64_t i, T scale, T) {
      return of[i] > 0 ? value[i] : scale * value[i];
    };
  });
}

/// The sums over a channel of dy x and of dy. They are in double, in an order that does not depend on the number of
/// threads. With `below`, dy x counts only where x is not above 0.
struct Sums {
  double scale, shift;
};

template <class T>
void sum_gradients(ThreadPool& pool, const Args& args, bool by_channel, bool adds, bool below) {
  const Shape& shape = args.dy.shape;
  auto* const sums = static_cast<Sums*>(args.workspace);
  pool.each(shape.c, 1, [&](std::int64_t c) {
    TwoSums all;
    for (int n = 0; n < shape.n; ++n) {
      const T* const dy = image<const T>(args.dy, n) + c * shape.plane();
      const T* const x = image<const T>(args.x[0], n) + c * shape.plane();
      all.add(shape.plane(), [&](const auto& load_at, std::int64_t i, auto& scale, auto& shift) {
        const auto d = load_at(dy + i), of = load_at(x + i);
        auto product = d * of;
        const decltype(product) none{};
        scale += below ? (of > 0 ? none : product) : product;
        shift += d;
      });
    }
    sums[c] = {all.first(), all.second()};
  });
  if (!by_channel)
    for (int c = 1; c < shape.c; ++c) sums[0].scale += sums[c].scale, sums[0].shift += sums[c].shift;
  for (std::int64_t k = 0; k < args.dw[0].shape.count(); ++k) {
    const auto put = [&](T& to, double sum) { to = static_cast<T>(adds ? sum + static_cast<double>(to) : sum); };
    put(args.dw[0].as<T>()[k], sums[k].scale);
    if (!below) put(args.dw[1].as<T>()[k], sums[k].shift);
  }
}

/// Lowers a PRelu if `below`, else a ScaleShift.
Lowered lower_runs(const Spec& spec, ThreadPool& pool, bool by_channel, bool learned, bool below) {
  Lowered unit = in_place_unit(spec);
  unit.backward_reads_y = false;
  const std::int64_t run = by_channel ? spec.y.shape.plane() : spec.y.shape.image();
  unit.backward_reads_x[0] = learned;
  return with_type(spec.y.dtype, [&]<class T>() {
    const auto number = [learned](const Args& args, std::size_t k) {
      return (learned ? args.w : args.state)[k].as<const T>();
    };
    unit = with_steps(
        unit, spec,
        [&pool, run, number, below](const Args& args) {
          if (below) return put_rectified(pool, args.y, args.x[0], args.x[0], number(args, 0), run, false);
          put_scaled(pool, args.y, args.x[0], number(args, 0), number(args, 1), run, false);
        },
        [&pool, run, number, below, adds = adds_dx(spec, 0)](const Args& args) {
          if (!wanted(args, 0)) return;
          if (below) return put_rectified(pool, args.dx[0], args.dy, args.x[0], number(args, 0), run, adds);
          put_scaled<T>(pool, args.dx[0], args.dy, number(args, 0), nullptr, run, adds);
        });
    if (!learned || spec.mode == Mode::inference) return unit;
    unit.steps.push_back(step(
        {Pass::backward_params}, "direct",
        [&pool, by_channel, below, adds = spec.adds_dw](const Args& args) {
          sum_gradients<T>(pool, args, by_channel, adds, below);
        },
        static_cast<std::size_t>(spec.y.shape.c) * sizeof(Sums)));
    return unit;
  });
}

}  // namespace

Lowered lower(const ScaleShift& op, const Spec& spec, const Choice&, const Context& context) {
  return lower_runs(spec, context.pool, op.by_channel, op.learned, false);
}
Lowered lower(const PRelu& op, const Spec& spec, const Choice&, const Context& context) {
  return lower_runs(spec, context.pool, op.by_channel, true, true);
}

}  // namespace lamina::eigen
