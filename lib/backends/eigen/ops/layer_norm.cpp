// Layer normalisation over the channels of each pixel. Vectors are chunks of pixels, and loops run over the channels: a
// chunk of all channels stays in cache for its second pass. Sums are in double, in an order that does not depend on the
// number of threads.

#include <algorithm>
#include <cmath>

#include "lib/backends/eigen/ops/norm/channel.h"

namespace lamina::eigen {
namespace batch_norm {
namespace {

template <class Number>
using Chunk = Number[chunk];

/// Some pixels of an image. Their channels are rows.
struct Pixels {
  std::int64_t n, first, count;

  /// A row of a tensor. The row two channels further is prefetched; it may be out of bounds.
  template <class T>
  const T* row(const Tensor& tensor, std::int64_t c, Room<T>& room) const {
    const std::int64_t ahead = at(tensor, c + 2);
    if (is_half(tensor.dtype))
      prefetch(tensor.as<const std::uint16_t>() + ahead, count);
    else
      prefetch(tensor.as<const T>() + ahead, count);
    return load(tensor, at(tensor, c), count, room);
  }
  std::int64_t at(const Tensor& tensor, std::int64_t c) const { return plane(tensor, n, c) + first; }
  Statistics* saved(const Args& args, const Shape& shape) const {
    return static_cast<Statistics*>(args.saved) + n * shape.plane() + first;
  }
};

template <class Work>
void split_pixels(ThreadPool& pool, const Shape& shape, Work&& work) {
  split_chunks(pool, shape, chunk, 1, [&](int, std::int64_t n, std::int64_t first, std::int64_t count) {
    work(Pixels{n, first, count});
  });
}

/// Sums differences from the first channel, as batch normalisation sums differences from one value.
template <class T>
void forward_of_pixels(ThreadPool& pool, const Args& args, double epsilon) {
  const Shape& shape = args.y.shape;
  split_pixels(pool, shape, [&](const Pixels& pixels) {
    Room<T> room;
    Chunk<double> origin, sum{}, squares{};
    for (std::int64_t c = 0; c < shape.c; ++c) {
      const T* const x = pixels.row(args.x[0], c, room);
      if (c == 0) std::copy_n(x, pixels.count, origin);
      for (std::int64_t i = 0; i < pixels.count; ++i) {
        const double d = static_cast<double>(x[i]) - origin[i];
        sum[i] += d;
        squares[i] += d * d;
      }
    }
    Chunk<T> mean, inverse;
    for (std::int64_t i = 0; i < pixels.count; ++i) {
      const double offset = sum[i] / shape.c, variance = std::max(0.0, squares[i] / shape.c - offset * offset);
      const Statistics statistics = {origin[i] + offset, 1 / std::sqrt(variance + epsilon)};
      mean[i] = static_cast<T>(statistics.mean);
      inverse[i] = static_cast<T>(statistics.inverse_deviation);
      if (args.saved != nullptr) pixels.saved(args, shape)[i] = statistics;
    }
    Output<T> y(args.y, false, {&args.x[0]});
    for (std::int64_t c = 0; c < shape.c; ++c) {
      const T* const x = pixels.row(args.x[0], c, room);
      const T scale = static_cast<T>(number_of<T>(args, 0, c)), shift = static_cast<T>(number_of<T>(args, 1, c));
      T* const to = y.begin(pixels.at(args.y, c), pixels.count, false);
      LAMINA_INDEPENDENT
      for (std::int64_t i = 0; i < pixels.count; ++i) to[i] = multiply_add((x[i] - mean[i]) * inverse[i], scale, shift);
      y.finish(to);
    }
  });
}

/// Two sums over the pixels of a row: of dy times the normalised x, and of dy.
template <class T>
Pair row_sums(const T* dy, const double* normalised, std::int64_t count) {
  TwoSums sums;
  sums.add(count, [&](const auto& load_at, std::int64_t i, auto& sum, auto& products) {
    const auto d = load_at(dy + i);
    sum += d;
    products += d * load_at(normalised + i);
  });
  return {sums.second(), sums.first()};
}

/// Leaves the sums of each chunk in the workspace, for the gradients of scale and shift. xh is the normalised x, and g
/// is scale dy.
template <class T>
void backward_of_pixels(ThreadPool& pool, const Args& args, bool adds_dx, bool adds_dw) {
  const Shape& shape = args.dy.shape;
  const std::int64_t chunks = divide_up(shape.plane(), chunk);
  auto* const sums = static_cast<Pair*>(args.workspace);
  split_pixels(pool, shape, [&](const Pixels& pixels) {
    const Statistics* const statistics = pixels.saved(args, shape);
    Room<T> x_room, dy_room;
    Chunk<double> mean, inverse, normalised, sum{}, products{};  // of g and of g xh
    for (std::int64_t i = 0; i < pixels.count; ++i) {
      mean[i] = statistics[i].mean;
      inverse[i] = statistics[i].inverse_deviation;
    }
    for (std::int64_t c = 0; c < shape.c; ++c) {
      const T *const x = pixels.row(args.x[0], c, x_room), *const dy = pixels.row(args.dy, c, dy_room);
      const double scale = number_of<T>(args, 0, c);
      for (std::int64_t i = 0; i < pixels.count; ++i) {
        const double g = scale * static_cast<double>(dy[i]);
        normalised[i] = (static_cast<double>(x[i]) - mean[i]) * inverse[i];
        sum[i] += g;
        products[i] += g * normalised[i];
      }
      if (!args.dw.empty())
        sums[(pixels.n * chunks + pixels.first / chunk) * shape.c + c] = row_sums(dy, normalised, pixels.count);
    }
    if (!wanted(args, 0)) return;
    Chunk<T> centre, factor, slope, offset;
    for (std::int64_t i = 0; i < pixels.count; ++i) {
      centre[i] = static_cast<T>(mean[i]);
      factor[i] = static_cast<T>(inverse[i]);
      slope[i] = static_cast<T>(-inverse[i] * inverse[i] * products[i] / shape.c);
      offset[i] = static_cast<T>(-inverse[i] * sum[i] / shape.c);
    }
    Output<T> dx(args.dx[0], adds_dx, {&args.dy, &args.x[0]});
    for (std::int64_t c = 0; c < shape.c; ++c) {
      const T *const x = pixels.row(args.x[0], c, x_room), *const dy = pixels.row(args.dy, c, dy_room);
      const T scale = static_cast<T>(number_of<T>(args, 0, c));
      T* const to = dx.begin(pixels.at(args.dx[0], c), pixels.count, adds_dx);
      put_each(to, pixels.count, adds_dx, [=, &centre, &factor, &slope, &offset](std::int64_t i) {
        return multiply_add(scale * factor[i], dy[i], multiply_add(x[i] - centre[i], slope[i], offset[i]));
      });
      dx.finish(to);
    }
  });
  sum_parameter_gradients<T>(args, sums, shape.n * chunks, adds_dw);
}

}  // namespace
}  // namespace batch_norm

Lowered lower(const LayerNorm& op, const Spec& spec, const Choice& choice, const Context& context) {
  const Shape& shape = spec.y.shape;
  if (shape.plane() == 1)
    return lower(GroupNorm{.groups = 1, .epsilon = op.epsilon, .affine = op.affine}, spec, choice, context);
  Lowered unit = norm_unit(spec, {});
  const auto chunks = static_cast<std::size_t>(shape.n * divide_up(shape.plane(), batch_norm::chunk));
  if (spec.mode == Mode::training)
    unit.saved_bytes = static_cast<std::size_t>(shape.n * shape.plane()) * sizeof(batch_norm::Statistics);
  return with_type(spec.y.dtype, [&]<class T>() {
    return with_steps(
        unit, spec,
        [&pool = context.pool, op](const Args& args) { batch_norm::forward_of_pixels<T>(pool, args, op.epsilon); },
        [&pool = context.pool, adds_dx = adds_dx(spec, 0), adds_dw = spec.adds_dw](const Args& args) {
          batch_norm::backward_of_pixels<T>(pool, args, adds_dx, adds_dw);
        },
        0, chunks * static_cast<std::size_t>(shape.c) * sizeof(batch_norm::Pair), gradient_passes(spec));
  });
}

}  // namespace lamina::eigen
