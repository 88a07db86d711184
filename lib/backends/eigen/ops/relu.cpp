// y = max(x, 0). The gradient's mask is read from y, so that x need not be kept.

#include "../runtime/elements.h"

namespace lamina::eigen {
namespace {

template <class T>
void forward(Pool& pool, const Args& args) {
  split_images(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    const T* x = image<const T>(args.x[0], n);
    T* y = image<T>(args.y, n);
    LAMINA_INDEPENDENT
    for (std::int64_t i = first; i < last; ++i) y[i] = x[i] <= 0 ? T(0) : x[i];  // a NaN is not <= 0, and stays
  });
}

template <class T>
void backward(Pool& pool, const Args& args, bool adds) {
  with_flag(adds, [&](auto add) {
    split_images(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
      const T* y = image<const T>(args.y, n);
      const T* dy = image<const T>(args.dy, n);
      T* dx = image<T>(args.dx[0], n);
      LAMINA_INDEPENDENT
      for (std::int64_t i = first; i < last; ++i) {
        const T d = y[i] > 0 ? dy[i] : T(0);
        dx[i] = add ? dx[i] + d : d;
      }
    });
  });
}

}  // namespace

Lowered lower(const Relu&, const Spec& spec, const Choice&, const Context& context) {
  return lower_in_place(
      spec, context.pool, []<class T>(Pool& pool, const Args& args) { forward<T>(pool, args); },
      []<class T>(Pool& pool, const Args& args, bool adds) { backward<T>(pool, args, adds); });
}

}  // namespace lamina::eigen
