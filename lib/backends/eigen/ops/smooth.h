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
  return lower_in_place(
      spec, context.pool, [f]<class T>(Pool& pool, const Args& args) { forward_smooth<T>(pool, args, f); },
      [slope]<class T>(Pool& pool, const Args& args, bool adds) { backward_smooth<T>(pool, args, adds, slope); });
}

}  // namespace lamina::eigen
