// y = x[0] x[1]. The second has the shape of the first, or one factor for each plane.

#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t chunk = 2048;  // elements; they stay in cache for both gradients

/// to = a b, or to += a b. All may be the same memory.
template <class T>
void put_product(T* to, const T* a, const T* b, std::int64_t count, bool adds) {
  with_flag(adds, [&](auto add) {
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) to[i] = add ? to[i] + a[i] * b[i] : a[i] * b[i];
  });
}

template <class T>
void put_product(T* to, const T* a, T factor, std::int64_t count, bool adds) {
  with_flag(adds, [&](auto add) {
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) to[i] = add ? to[i] + a[i] * factor : a[i] * factor;
  });
}

template <class T>
void multiply_elements(ThreadPool& pool, const Args& args) {
  split_images(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    put_product(image<T>(args.y, n) + first, image<const T>(args.x[0], n) + first, image<const T>(args.x[1], n) + first,
                last - first, false);
  });
}

template <class T>
void multiply_planes(ThreadPool& pool, const Args& args) {
  const std::int64_t plane = args.y.shape.plane();
  split_planes(pool, args.y.shape, [&](std::int64_t n, std::int64_t c) {
    put_product(image<T>(args.y, n) + c * plane, image<const T>(args.x[0], n) + c * plane,
                image<const T>(args.x[1], n)[c], plane, false);
  });
}

template <class T>
void gradients_of_elements(ThreadPool& pool, const Args& args, const bool (&adds)[2]) {
  split_images(pool, args.dy.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    for (std::int64_t at = first; at < last; at += chunk)
      for (const bool in_place : {false, true})  // a dx in dy's memory comes last
        for (std::size_t k = 0; k < 2; ++k)
          if (wanted(args, k) && same_place(args.dx[k], args.dy) == in_place)
            put_product(image<T>(args.dx[k], n) + at, image<const T>(args.dy, n) + at,
                        image<const T>(args.x[1 - k], n) + at, std::min(chunk, last - at), adds[k]);
  });
}

template <class T>
void gradients_of_planes(ThreadPool& pool, const Args& args, const bool (&adds)[2]) {
  const std::int64_t plane = args.dy.shape.plane();
  split_planes(pool, args.dy.shape, [&](std::int64_t n, std::int64_t c) {
    const T* const dy = image<const T>(args.dy, n) + c * plane;
    if (wanted(args, 1)) {
      const T* const x = image<const T>(args.x[0], n) + c * plane;
      const auto sum = static_cast<T>(interleaved_sum<T>(plane, [&](std::int64_t i) { return dy[i] * x[i]; }));
      T& to = image<T>(args.dx[1], n)[c];
      to = adds[1] ? to + sum : sum;
    }
    if (wanted(args, 0))
      put_product(image<T>(args.dx[0], n) + c * plane, dy, image<const T>(args.x[1], n)[c], plane, adds[0]);
  });
}

}  // namespace

Lowered lower(const Multiply&, const Spec& spec, const Choice&, const Context& context) {
  const bool of_planes = spec.x[1].shape != spec.x[0].shape;
  Lowered unit = product_unit(spec);
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec,
        [&pool = context.pool, of_planes](const Args& args) {
          of_planes ? multiply_planes<T>(pool, args) : multiply_elements<T>(pool, args);
        },
        [&pool = context.pool, of_planes, first = adds_dx(spec, 0), second = adds_dx(spec, 1)](const Args& args) {
          const bool adds[] = {first, second};
          of_planes ? gradients_of_planes<T>(pool, args, adds) : gradients_of_elements<T>(pool, args, adds);
        });
  });
  return unit;
}

}  // namespace lamina::eigen
