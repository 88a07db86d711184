// y = scale x + shift by fixed numbers: of each channel, or one pair for all.

#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {
namespace {

/// to = scale from + shift, or to +=. A run of elements has one number of each; a null shift is 0.
template <class T>
void put_scaled(Pool& pool, const Tensor& to, const Tensor& from, const T* scales, const T* shifts, std::int64_t run,
                bool adds) {
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

}  // namespace

Lowered lower(const ScaleShift& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = in_place_unit(spec);
  unit.backward_reads_y = false;
  const std::int64_t run = op.by_channel ? spec.y.shape.plane() : spec.y.shape.image();
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec,
        [&pool = context.pool, run](const Args& args) {
          put_scaled(pool, args.y, args.x[0], args.state[0].as<const T>(), args.state[1].as<const T>(), run, false);
        },
        [&pool = context.pool, run, adds = adds_dx(spec, 0)](const Args& args) {
          if (!wanted(args, 0)) return;
          put_scaled<T>(pool, args.dx[0], args.dy, args.state[0].as<const T>(), nullptr, run, adds);
        });
  });
  return unit;
}

}  // namespace lamina::eigen
