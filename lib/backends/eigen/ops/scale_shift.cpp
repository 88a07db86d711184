// y = scale x + shift by fixed or learned numbers: one pair for each channel, or one for all.

#include "lib/backends/eigen/runtime/elements.h"
#include "lib/backends/eigen/runtime/lanes.h"

namespace lamina::eigen {
namespace {

/// to = scale from + shift, or to += this sum. A run of elements has one scale and one shift; a null shift is 0.
template <class T>
void put_scaled(ThreadPool& pool, const Tensor& to, const Tensor& from, const T* scales, const T* shifts,
                std::int64_t run, bool adds) {
  with_flag(adds, [&](auto add) {
    split_images(pool, to.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
      for (std::int64_t at = first, end = 0; at < last; at = end) {
        const std::int64_t k = at / run;
        end = std::min(last, (k + 1) * run);
        T* const y = image<T>(to, n);
        const T* const x = image<const T>(from, n);
        const T scale = scales[k], shift = shifts == nullptr ? T(0) : shifts[k];
        LAMINA_INDEPENDENT
        for (std::int64_t i = at; i < end; ++i) {
          const T value = multiply_add(scale, x[i], shift);
          y[i] = add ? y[i] + value : value;
        }
      }
    });
  });
}

/// The sums of dy x and of dy of a channel, in double, in an order that does not depend on the number of threads.
struct Sums {
  double scale, shift;
};

template <class T>
void sum_gradients(ThreadPool& pool, const Args& args, bool by_channel, bool adds) {
  const Shape& shape = args.dy.shape;
  auto* const sums = static_cast<Sums*>(args.workspace);
  pool.split(shape.c, 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t c = from; c < to; ++c) {
      TwoSums all;
      for (int n = 0; n < shape.n; ++n) {
        const T* const dy = image<const T>(args.dy, n) + c * shape.plane();
        const T* const x = image<const T>(args.x[0], n) + c * shape.plane();
        const auto add = [&](auto load) {
          return [&, load](std::int64_t i, auto& scale, auto& shift) {
            const auto d = load(dy + i);
            scale += d * load(x + i);
            shift += d;
          };
        };
        all.add(shape.plane(), add([](const T* at) { return load4(at); }),
                add([](const T* at) { return static_cast<double>(*at); }));
      }
      sums[c] = {all.first(), all.second()};
    }
  });
  if (!by_channel)
    for (int c = 1; c < shape.c; ++c) sums[0].scale += sums[c].scale, sums[0].shift += sums[c].shift;
  for (std::int64_t k = 0; k < args.dw[0].shape.count(); ++k) {
    const auto put = [&](T& to, double sum) { to = static_cast<T>(adds ? sum + static_cast<double>(to) : sum); };
    put(args.dw[0].as<T>()[k], sums[k].scale);
    put(args.dw[1].as<T>()[k], sums[k].shift);
  }
}

}  // namespace

Lowered lower(const ScaleShift& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = in_place_unit(spec);
  unit.backward_reads_y = false;
  const std::int64_t run = op.by_channel ? spec.y.shape.plane() : spec.y.shape.image();
  unit.backward_reads_x[0] = op.learned;
  with_type(spec.y.dtype, [&]<class T>() {
    const auto number = [learned = op.learned](const Args& args, std::size_t k) {
      return (learned ? args.w : args.state)[k].as<const T>();
    };
    add_steps(
        unit, spec,
        [&pool = context.pool, run, number](const Args& args) {
          put_scaled(pool, args.y, args.x[0], number(args, 0), number(args, 1), run, false);
        },
        [&pool = context.pool, run, number, adds = adds_dx(spec, 0)](const Args& args) {
          if (!wanted(args, 0)) return;
          put_scaled<T>(pool, args.dx[0], args.dy, number(args, 0), nullptr, run, adds);
        });
    if (!op.learned || spec.mode == Mode::inference) return;
    unit.steps.push_back(step(
        {Pass::backward_params}, "direct",
        [&pool = context.pool, by_channel = op.by_channel, adds = spec.adds_dw](const Args& args) {
          sum_gradients<T>(pool, args, by_channel, adds);
        },
        static_cast<std::size_t>(spec.y.shape.c) * sizeof(Sums)));
  });
  return unit;
}

}  // namespace lamina::eigen
