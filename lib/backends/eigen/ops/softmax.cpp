// y = exp(x - max) / sum over the channels. Vectors are the contiguous channels of an image of one pixel, or chunks of
// pixels of a map, with a loop over the channels.

#include "exponentials.h"

namespace lamina::eigen {
namespace {

template <class T>
void forward_vector(const T* x, T* y, std::int64_t channels) {
  T largest = x[0];
  for (std::int64_t c = 1; c < channels; ++c) largest = std::max(largest, x[c]);
  Chunk<T> part, sums = Chunk<T>::Zero();
  for (std::int64_t c = 0; c < channels; c += chunk) {
    const std::int64_t count = std::min(chunk, channels - c);
    exponentials(x + c, largest, count, part);
    for (std::int64_t i = 0; i < count; ++i) sums[i] += part[i];
    std::copy_n(part.data(), count, y + c);
  }
  const T sum = sums.sum();
  for (std::int64_t c = 0; c < channels; ++c) y[c] /= sum;
}

template <class T>
void forward_map(const T* x, T* y, std::int64_t channels, std::int64_t plane, std::int64_t pixels) {
  Chunk<T> part, largest = Chunk<T>::Zero(), sums = Chunk<T>::Zero();
  std::copy_n(x, pixels, largest.data());
  for (std::int64_t c = 1; c < channels; ++c)
    for (std::int64_t i = 0; i < pixels; ++i) largest[i] = std::max(largest[i], x[c * plane + i]);
  for (std::int64_t c = 0; c < channels; ++c) {
    exponentials(x + c * plane, largest, pixels, part);
    sums += part;
    std::copy_n(part.data(), pixels, y + c * plane);
  }
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t i = 0; i < pixels; ++i) y[c * plane + i] /= sums[i];
}

template <class T>
void forward(ThreadPool& pool, const Args& args) {
  const Shape& shape = args.y.shape;
  const std::int64_t plane = shape.plane();
  split_chunks(pool, shape, [&](std::int64_t n, std::int64_t first, std::int64_t pixels) {
    const T* x = image<const T>(args.x[0], n) + first;
    T* y = image<T>(args.y, n) + first;
    if (plane == 1) return forward_vector(x, y, shape.c);
    forward_map(x, y, shape.c, plane, pixels);
  });
}

/// dx = y (dy - sum over the channels of y dy).
template <class T, bool Adds>
void backward_chunk(const T* y, const T* dy, T* dx, std::int64_t channels, std::int64_t plane, std::int64_t pixels) {
  T dots[chunk] = {};
  if (plane == 1) {
    T lanes[chunk] = {};
    for (std::int64_t c = 0; c < channels; ++c) lanes[c % chunk] += y[c] * dy[c];
    for (const T lane : lanes) dots[0] += lane;
  } else {
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t i = 0; i < pixels; ++i) dots[i] += y[c * plane + i] * dy[c * plane + i];
  }
  const auto place = [&](std::int64_t at, T dot) {
    const T d = y[at] * (dy[at] - dot);
    dx[at] = Adds ? dx[at] + d : d;
  };
  if (plane == 1) {
    LAMINA_INDEPENDENT
    for (std::int64_t c = 0; c < channels; ++c) place(c, dots[0]);
  } else {
    for (std::int64_t c = 0; c < channels; ++c) {
      LAMINA_INDEPENDENT
      for (std::int64_t i = 0; i < pixels; ++i) place(c * plane + i, dots[i]);
    }
  }
}

template <class T>
void backward(ThreadPool& pool, const Args& args, bool adds) {
  const Shape& shape = args.dy.shape;
  with_flag(adds, [&](auto add) {
    split_chunks(pool, shape, [&](std::int64_t n, std::int64_t first, std::int64_t pixels) {
      backward_chunk<T, decltype(add)::value>(image<const T>(args.y, n) + first, image<const T>(args.dy, n) + first,
                                              image<T>(args.dx[0], n) + first, shape.c, shape.plane(), pixels);
    });
  });
}

}  // namespace

Lowered lower(const Softmax&, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = in_place_unit(spec);
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec, [&pool = context.pool](const Args& args) { forward<T>(pool, args); },
        [&pool = context.pool, adds = adds_dx(spec, 0)](const Args& args) {
          if (wanted(args, 0)) backward<T>(pool, args, adds);
        });
  });
  return unit;
}

}  // namespace lamina::eigen
