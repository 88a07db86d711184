#pragma once
// Element-wise ops that are one smooth function, whose gradient follows from y: Sigmoid and Tanh.

#include "exponentials.h"

namespace lamina::eigen {

/// y = f(x), by `f(Chunk<T>&)` in place.
template <class T, class F>
void forward_smooth(Pool& pool, const Args& args, F f) {
  split_images(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    const T* x = image<const T>(args.x[0], n);
    T* y = image<T>(args.y, n);
    Chunk<T> part;
    for (std::int64_t i = first; i < last; i += chunk) {
      const std::int64_t count = std::min(chunk, last - i);
      load(x + i, count, part);
      f(part);
      std::copy_n(part.data(), count, y + i);
    }
  });
}

/// dx = dy slope(y).
template <class T, class Slope>
void backward_smooth(Pool& pool, const Args& args, bool adds, Slope slope) {
  if (!wanted(args, 0)) return;
  with_flag(adds, [&](auto add) {
    split_images(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
      const T* y = image<const T>(args.y, n);
      const T* dy = image<const T>(args.dy, n);
      T* dx = image<T>(args.dx[0], n);
      LAMINA_INDEPENDENT
      for (std::int64_t i = first; i < last; ++i) {
        const T d = dy[i] * slope(y[i]);
        dx[i] = add ? dx[i] + d : d;
      }
    });
  });
}

/// The unit of such an op, from functions that take a Chunk<T>& and a T.
template <class F, class Slope>
Lowered lower_smooth(const Spec& spec, const Context& context, F f, Slope slope) {
  Lowered unit = empty_unit(spec);
  unit.y_may_alias_x[0] = same_pitch(spec, 0);
  unit.dx_may_alias_dy[0] = same_gradient_pitch(spec, 0);
  unit.recompute_reads_x[0] = true;
  unit.backward_reads_y = true;
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec, [&pool = context.pool, f](const Args& args) { forward_smooth<T>(pool, args, f); },
        [&pool = context.pool, adds = adds_dx(spec, 0), slope](const Args& args) {
          backward_smooth<T>(pool, args, adds, slope);
        });
  });
  return unit;
}

}  // namespace lamina::eigen
