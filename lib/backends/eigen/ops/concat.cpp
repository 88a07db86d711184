// The inputs concatenated on the channel axis. An input that a plan has placed inside y is not copied.

#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {
namespace {

/// The channels of y from `first` on, with the shape of `part`.
Tensor channels_of(const Tensor& y, const Shape& part, int first) {
  Tensor view = y;
  view.data = static_cast<char*>(y.data) + static_cast<std::size_t>(first * y.shape.plane()) * size_of(y.dtype);
  view.shape = part;
  return view;
}

template <class T>
void copy(ThreadPool& pool, const Tensor& to, const Tensor& from, bool adds) {
  if (same_place(to, from) && !adds) return;
  split_images(pool, to.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    put(image<T>(to, n) + first, image<const T>(from, n) + first, last - first, adds);
  });
}

template <class T>
void forward(ThreadPool& pool, const Args& args) {
  int channel = 0;
  for (const Tensor& x : args.x) {
    copy<T>(pool, channels_of(args.y, x.shape, channel), x, false);
    channel += x.shape.c;
  }
}

template <class T>
void backward(ThreadPool& pool, const Args& args, const std::vector<Shape>& shapes, const std::vector<bool>& adds) {
  int channel = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (wanted(args, i)) copy<T>(pool, args.dx[i], channels_of(args.dy, shapes[i], channel), adds[i]);
    channel += shapes[i].c;
  }
}

}  // namespace

Lowered lower(const Concat&, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  std::vector<Shape> shapes;
  std::vector<bool> adds;
  for (std::size_t i = 0; i < spec.x.size(); ++i) {
    shapes.push_back(spec.x[i].shape);
    adds.push_back(adds_dx(spec, i));
  }
  with_type(spec.y.dtype, [&]<class T>() {
    unit.steps.push_back(
        step({Pass::forward}, "direct", [&pool = context.pool](const Args& args) { forward<T>(pool, args); }));
    if (spec.mode == Mode::inference) return;
    unit.steps.push_back(step({Pass::backward_data}, "direct", [&pool = context.pool, shapes, adds](const Args& args) {
      backward<T>(pool, args, shapes, adds);
    }));
  });
  return unit;
}

}  // namespace lamina::eigen
