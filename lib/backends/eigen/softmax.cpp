// y = exp(x - max) / sum over the channels. One value per image: the channels lie together and are the vector.
// Maps: strips of pixels are the vector, and the channels are walked.

#include <Eigen/Core>

#include "elements.h"

namespace lamina::eigen {
namespace {

template <class T>
using Row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using ConstRow = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

constexpr std::int64_t strip = 64;  // pixels

/// Calls work(n, first pixel, pixels) for strips that cover every pixel of every image once.
template <class Work>
void split_strips(Pool& pool, const Shape& shape, Work&& work) {
  const std::int64_t plane = shape.plane(), strips = (plane + strip - 1) / strip;
  pool.split(shape.n * strips, 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      const std::int64_t first = i % strips * strip;
      work(i / strips, first, std::min(strip, plane - first));
    }
  });
}

template <class T>
void forward_vector(const T* x, T* y, std::int64_t channels) {
  const ConstRow<T> from(x, channels);
  Row<T> to(y, channels);
  const T largest = from.maxCoeff();
  to = (from - largest).exp();
  to *= 1 / to.sum();
}

template <class T>
void forward_map(const T* x, T* y, std::int64_t channels, std::int64_t plane, std::int64_t pixels) {
  T largest[strip], sum[strip];
  std::copy_n(x, pixels, largest);
  for (std::int64_t c = 1; c < channels; ++c)
    for (std::int64_t i = 0; i < pixels; ++i) largest[i] = std::max(largest[i], x[c * plane + i]);
  std::fill_n(sum, pixels, T(0));
  Row<T> sums(sum, pixels);
  for (std::int64_t c = 0; c < channels; ++c) {
    Row<T> to(y + c * plane, pixels);
    to = (ConstRow<T>(x + c * plane, pixels) - ConstRow<T>(largest, pixels)).exp();
    sums += to;
  }
  sums = sums.inverse();
  for (std::int64_t c = 0; c < channels; ++c) Row<T>(y + c * plane, pixels) *= sums;
}

template <class T>
void forward(Pool& pool, const Args& args) {
  const Shape& shape = args.y.shape;
  const std::int64_t plane = shape.plane();
  split_strips(pool, shape, [&](std::int64_t n, std::int64_t first, std::int64_t pixels) {
    const T* x = image<const T>(args.x[0], n) + first;
    T* y = image<T>(args.y, n) + first;
    if (plane == 1) return forward_vector(x, y, shape.c);
    forward_map(x, y, shape.c, plane, pixels);
  });
}

/// dx = y (dy - sum over the channels of y dy).
template <class T>
void backward(Pool& pool, const Args& args, bool adds) {
  if (!wanted(args, 0)) return;
  const Shape& shape = args.dy.shape;
  const std::int64_t plane = shape.plane();
  const auto place = [adds](auto&& to, const auto& value) {
    if (adds) {
      to += value;
    } else {
      to = value;
    }
  };
  split_strips(pool, shape, [&](std::int64_t n, std::int64_t first, std::int64_t pixels) {
    const T* y = image<const T>(args.y, n) + first;
    const T* dy = image<const T>(args.dy, n) + first;
    T* dx = image<T>(args.dx[0], n) + first;
    if (plane == 1) {
      const ConstRow<T> p(y, shape.c), dp(dy, shape.c);
      const T dot = (p * dp).sum();
      return place(Row<T>(dx, shape.c), p * (dp - dot));
    }
    T dot[strip] = {};
    Row<T> dots(dot, pixels);
    for (std::int64_t c = 0; c < shape.c; ++c)
      dots += ConstRow<T>(y + c * plane, pixels) * ConstRow<T>(dy + c * plane, pixels);
    for (std::int64_t c = 0; c < shape.c; ++c)
      place(Row<T>(dx + c * plane, pixels),
            ConstRow<T>(y + c * plane, pixels) * (ConstRow<T>(dy + c * plane, pixels) - dots));
  });
}

}  // namespace

Lowered lower(const Softmax&, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  unit.y_may_alias_x[0] = same_pitch(spec, 0);
  unit.dx_may_alias_dy[0] = same_gradient_pitch(spec, 0);
  unit.recompute_reads_x[0] = true;
  unit.backward_reads_y = true;
  with_type(spec.y.dtype, [&]<class T>() {
    const auto run_forward = [&pool = context.pool](const Args& args) { forward<T>(pool, args); };
    unit.steps.push_back(step({Pass::forward}, "direct", run_forward));
    if (spec.mode == Mode::inference) return;
    unit.steps.push_back(step({Pass::recompute}, "direct", run_forward));
    unit.steps.push_back(
        step({Pass::backward_data}, "direct",
             [&pool = context.pool, adds = adds_dx(spec, 0)](const Args& args) { backward<T>(pool, args, adds); }));
  });
  return unit;
}

}  // namespace lamina::eigen
