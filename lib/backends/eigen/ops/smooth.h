#pragma once
// Element-wise ops that are one smooth function, whose gradient follows from y: Sigmoid and Tanh.

#include "../micro_kernels/activation_kernels.h"
#include "../runtime/elements.h"

namespace lamina::eigen {

/// y = f(x) by a function of the instruction set, which gives an element the same bits wherever it is.
template <class T>
void forward_smooth(Pool& pool, const Args& args, void (*f)(T* to, const T* from, std::int64_t count)) {
  split_images(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    f(image<T>(args.y, n) + first, image<const T>(args.x[0], n) + first, last - first);
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

/// The unit of such an op: `f` picks the function of an ActivationKernels<T>, `slope` takes a T.
template <class F, class Slope>
Lowered lower_smooth(const Spec& spec, const Context& context, F f, Slope slope) {
  return lower_in_place(
      spec, context.pool,
      [f, set = &context.set]<class T>(Pool& pool, const Args& args) {
        forward_smooth<T>(pool, args, f(set->of<T>().activations));
      },
      [slope]<class T>(Pool& pool, const Args& args, bool adds) { backward_smooth<T>(pool, args, adds, slope); });
}

}  // namespace lamina::eigen
