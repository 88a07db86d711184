// Some channels of x. The gradient is dy there and zero elsewhere.

#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {
namespace {

template <class T>
void forward(ThreadPool& pool, const Args& args, std::int64_t first_channel) {
  const Tensor& x = args.x[0];
  const std::int64_t offset = first_channel * x.shape.plane();
  if (x.as<T>() + offset == args.y.as<T>() && x.pitch == args.y.pitch) return;  // laid out as a view
  split_images(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    put(image<T>(args.y, n) + first, image<const T>(x, n) + offset + first, last - first, false);
  });
}

template <class T>
void backward(ThreadPool& pool, const Args& args, std::int64_t first_channel, bool adds) {
  if (!wanted(args, 0)) return;
  const Tensor &dx = args.dx[0], &dy = args.dy;
  const std::int64_t begin = first_channel * dx.shape.plane(), end = begin + dy.shape.image();
  const bool is_view = dx.as<T>() + begin == dy.as<T>() && dx.pitch == dy.pitch;
  split_images(pool, dx.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    T* to = image<T>(dx, n);
    if (!adds && first < begin) std::fill(to + first, to + std::min(last, begin), T(0));
    if (!adds && last > end) std::fill(to + std::max(first, end), to + last, T(0));
    const std::int64_t from = std::max(first, begin), until = std::min(last, end);
    if (from < until && (adds || !is_view)) put(to + from, image<const T>(dy, n) + from - begin, until - from, adds);
  });
}

}  // namespace

Lowered lower(const Slice& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  with_type(spec.y.dtype, [&]<class T>() {
    unit.steps.push_back(step({Pass::forward}, "direct", [&pool = context.pool, channel = op.first](const Args& args) {
      forward<T>(pool, args, channel);
    }));
    if (spec.mode == Mode::inference) return;
    unit.steps.push_back(step({Pass::backward_data}, "direct",
                              [&pool = context.pool, channel = op.first, adds = adds_dx(spec, 0)](const Args& args) {
                                backward<T>(pool, args, channel, adds);
                              }));
  });
  return unit;
}

}  // namespace lamina::eigen
