// y[c] = x[c] scale[c]^-beta, scale[c] = k + alpha/size * sum of x^2 over a window of channels. Vectors are chunks of
// pixels, and loops run over the channels. Nothing is saved: the backward pass makes scale again from x.

#include <Eigen/Core>
#include <cmath>

#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t chunk = 64;    // pixels
constexpr std::int64_t distance = 4;  // channels from the used to the prefetched one

template <class T>
std::uintptr_t bytes_of(std::int64_t elements) {
  return static_cast<std::uintptr_t>(elements) * sizeof(T);
}

template <class T>
struct Window {
  std::int64_t below, above;  // the window of channel c: c - below to c + above
  T k, alpha_per_cell, beta;

  explicit Window(const Lrn& op)
      : below(op.size / 2),
        above(op.size - 1 - op.size / 2),
        k(static_cast<T>(op.k)),
        alpha_per_cell(static_cast<T>(op.alpha / op.size)),
        beta(static_cast<T>(op.beta)) {}
};

/// A chunk has a fixed size and alignment, so that a power has the same bits wherever its pixel lies.
template <class T>
using Chunk = Eigen::Array<T, chunk, 1>;

/// scale^-beta. The usual exponents are square roots, each rounded once.
template <class T>
void negative_power(const Chunk<T>& scale, T beta, Chunk<T>& power) {
  if (beta == T(0.75)) {
    for (std::int64_t i = 0; i < chunk; ++i) {
      const T root = std::sqrt(scale[i]);
      power[i] = 1 / (root * std::sqrt(root));
    }
  } else if (beta == T(0.5)) {
    for (std::int64_t i = 0; i < chunk; ++i) power[i] = 1 / std::sqrt(scale[i]);
  } else {
    power = scale.pow(-beta);
  }
}

/// scale for channel c of a chunk, and k beyond its last pixel.
template <class T>
void window_scale(const Window<T>& window, const T* x, std::int64_t c, std::int64_t channels, std::int64_t plane,
                  std::int64_t pixels, Chunk<T>& scale) {
  scale.setZero();
  const std::int64_t last = std::min(channels - 1, c + window.above);
  for (std::int64_t j = std::max<std::int64_t>(0, c - window.below); j <= last; ++j) {
    const T* row = x + j * plane;
    T* to = scale.data();
    for (std::int64_t i = 0; i < pixels; ++i) to[i] += row[i] * row[i];
  }
  scale = window.k + window.alpha_per_cell * scale;
}

template <class T>
void forward(ThreadPool& pool, const Args& args, const Window<T>& window) {
  const Shape& shape = args.y.shape;
  const std::int64_t plane = shape.plane();
  split_chunks(pool, shape, chunk, 1, [&](int, std::int64_t n, std::int64_t first, std::int64_t pixels) {
    const T* x = image<const T>(args.x[0], n) + first;
    T* y = image<T>(args.y, n) + first;
    Chunk<T> scale, power;
    for (std::int64_t c = 0; c < shape.c; ++c) {
      prefetch(x + c * plane, pixels, bytes_of<T>((window.above + distance) * plane));
      prefetch<true>(y + c * plane, pixels, bytes_of<T>(distance * plane));
      window_scale(window, x, c, shape.c, plane, pixels, scale);
      negative_power(scale, window.beta, power);
      put_each(y + c * plane, pixels, false,
               [from = x + c * plane, factor = power.data()](std::int64_t i) { return from[i] * factor[i]; });
    }
  });
}

/// dx[i] = dy[i] scale[i]^-beta - 2 beta alpha/size x[i] * sum over the c whose window holds i of
/// dy[c] x[c] scale[c]^(-beta - 1).
template <class T>
void backward(ThreadPool& pool, const Args& args, const Window<T>& window, bool adds) {
  if (!wanted(args, 0)) return;
  const Shape& shape = args.dy.shape;
  const std::int64_t plane = shape.plane();
  const T factor = 2 * window.beta * window.alpha_per_cell;
  split_chunks(pool, shape, chunk, 1, [&](int part, std::int64_t n, std::int64_t first, std::int64_t pixels) {
    const T* x = image<const T>(args.x[0], n) + first;
    const T* dy = image<const T>(args.dy, n) + first;
    T* dx = image<T>(args.dx[0], n) + first;
    T* const direct = static_cast<T*>(args.workspace) + std::int64_t{part} * 2 * shape.c * chunk;  // dy scale^-beta
    T* const ratio = direct + shape.c * chunk;  // dy x scale^(-beta - 1)
    Chunk<T> scale, power;
    for (std::int64_t c = 0; c < shape.c; ++c) {
      prefetch(x + c * plane, pixels, bytes_of<T>((window.above + distance) * plane));
      prefetch(dy + c * plane, pixels, bytes_of<T>(distance * plane));
      window_scale(window, x, c, shape.c, plane, pixels, scale);
      negative_power(scale, window.beta, power);
      const T *x_row = x + c * plane, *dy_row = dy + c * plane, *p = power.data(), *s = scale.data();
      T *direct_row = direct + c * chunk, *ratio_row = ratio + c * chunk;
      LAMINA_INDEPENDENT
      for (std::int64_t i = 0; i < pixels; ++i) {
        const T d = dy_row[i] * p[i];
        direct_row[i] = d;
        ratio_row[i] = d * x_row[i] / s[i];
      }
    }
    for (std::int64_t c = 0; c < shape.c; ++c) {
      T sum[chunk] = {};
      const std::int64_t last = std::min<std::int64_t>(shape.c - 1, c + window.below);
      for (std::int64_t j = std::max<std::int64_t>(0, c - window.above); j <= last; ++j)
        for (std::int64_t i = 0; i < pixels; ++i) sum[i] += ratio[j * chunk + i];
      prefetch<true>(dx + c * plane, pixels, bytes_of<T>(distance * plane));
      const T *x_row = x + c * plane, *direct_row = direct + c * chunk;
      put_each(dx + c * plane, pixels, adds,
               [=, &sum](std::int64_t i) { return direct_row[i] - factor * x_row[i] * sum[i]; });
    }
  });
}

}  // namespace

Lowered lower(const Lrn& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  unit.backward_reads_x[0] = true;
  unit.dx_may_alias_dy[0] = same_gradient_pitch(spec, 0);
  return with_type(spec.y.dtype, [&]<class T>() {
    ThreadPool& pool = context.pool;
    const Window<T> window(op);
    const std::size_t workspace = 2 * static_cast<std::size_t>(spec.y.shape.c) * chunk * sizeof(T);
    return with_steps(
        unit, spec, [&pool, window](const Args& args) { forward<T>(pool, args, window); },
        [&pool, window, adds = adds_dx(spec, 0)](const Args& args) { backward<T>(pool, args, window, adds); }, 0,
        workspace * static_cast<std::size_t>(pool.threads()));
  });
}

}  // namespace lamina::eigen
