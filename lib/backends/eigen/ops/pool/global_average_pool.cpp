// The mean of each plane.

#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {
namespace {

template <class T>
void forward(ThreadPool& pool, const Args& args) {
  const Shape& shape = args.x[0].shape;
  const std::int64_t plane = shape.plane();
  split_planes(pool, shape, [&](std::int64_t n, std::int64_t c) {
    const T* const x = image<const T>(args.x[0], n) + c * plane;
    const double sum = interleaved_sum<T>(plane, [x](std::int64_t i) { return x[i]; });
    image<T>(args.y, n)[c] = static_cast<T>(sum / static_cast<double>(plane));
  });
}

template <class T>
void backward(ThreadPool& pool, const Args& args, bool adds) {
  if (!wanted(args, 0)) return;
  const Shape& shape = args.dx[0].shape;
  const std::int64_t plane = shape.plane();
  split_planes(pool, shape, [&](std::int64_t n, std::int64_t c) {
    const T share = image<const T>(args.dy, n)[c] / static_cast<T>(plane);
    T* dx = image<T>(args.dx[0], n) + c * plane;
    if (adds) {
      for (std::int64_t i = 0; i < plane; ++i) dx[i] += share;
    } else {
      std::fill_n(dx, plane, share);
    }
  });
}

}  // namespace

Lowered lower(const GlobalAveragePool&, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec, [&pool = context.pool](const Args& args) { forward<T>(pool, args); },
        [&pool = context.pool, adds = adds_dx(spec, 0)](const Args& args) { backward<T>(pool, args, adds); });
  });
  return unit;
}

}  // namespace lamina::eigen
