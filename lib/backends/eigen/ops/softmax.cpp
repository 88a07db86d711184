// y = exp(x - max) / sum along an axis, or its logarithm. Vectors are the adjacent cells of one sum, or chunks of
// places side by side, with a loop over their cells.

#include "exponentials.h"
#include "lib/core/units/along.h"

namespace lamina::eigen {
namespace {

template <class T>
void forward_vector(const T* x, T* y, std::int64_t cells, bool log) {
  T largest = x[0];
  for (std::int64_t c = 1; c < cells; ++c) largest = std::max(largest, x[c]);
  Chunk<T> part, sums = Chunk<T>::Zero();
  for (std::int64_t c = 0; c < cells; c += chunk) {
    const std::int64_t count = std::min(chunk, cells - c);
    exponentials(x + c, largest, count, part);
    for (std::int64_t i = 0; i < count; ++i) sums[i] += part[i];
    if (!log) std::copy_n(part.data(), count, y + c);
  }
  const T sum = log ? std::log(sums.sum()) : sums.sum();
  LAMINA_INDEPENDENT
  for (std::int64_t c = 0; c < cells; ++c) y[c] = log ? x[c] - largest - sum : y[c] / sum;
}

template <class T>
void forward_map(const T* x, T* y, const AxisCells& of, std::int64_t places, bool log) {
  const std::int64_t apart = of.inner;
  Chunk<T> part, largest = Chunk<T>::Zero(), sums = Chunk<T>::Zero();
  std::copy_n(x, places, largest.data());
  for (std::int64_t c = 1; c < of.cells; ++c)
    for (std::int64_t i = 0; i < places; ++i) largest[i] = std::max(largest[i], x[c * apart + i]);
  for (std::int64_t c = 0; c < of.cells; ++c) {
    exponentials(x + c * apart, largest, places, part);
    sums += part;
    if (!log) std::copy_n(part.data(), places, y + c * apart);
  }
  if (log) sums = sums.log();
  for (std::int64_t c = 0; c < of.cells; ++c) {
    const T* const from = x + c * apart;
    T* const to = y + c * apart;
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < places; ++i) to[i] = log ? from[i] - largest[i] - sums[i] : to[i] / sums[i];
  }
}

/// Calls work(n, first place's element, places) for chunks of places that cover every image once. Of adjacent cells a
/// chunk has one place.
template <class Work>
void split_places(ThreadPool& pool, const Shape& shape, const AxisCells& of, Work&& work) {
  split_chunks(pool, {shape.n * of.outer, of.cells, 1, of.inner},
               [&](std::int64_t i, std::int64_t first, std::int64_t places) {
                 work(i / of.outer, i % of.outer * of.cells * of.inner + first, places);
               });
}

template <class T>
void forward(ThreadPool& pool, const Args& args, const AxisCells& of, bool log) {
  split_places(pool, args.y.shape, of, [&](std::int64_t n, std::int64_t first, std::int64_t places) {
    const T* x = image<const T>(args.x[0], n) + first;
    T* y = image<T>(args.y, n) + first;
    if (of.inner == 1) return forward_vector(x, y, of.cells, log);
    forward_map(x, y, of, places, log);
  });
}

/// dx = y (dy - sum of y dy), or with `Log` dy - exp(y) times the sum of dy.
template <class T, bool Adds, bool Log>
void backward_chunk(const T* y, const T* dy, T* dx, const AxisCells& of, std::int64_t places) {
  const std::int64_t apart = of.inner;
  const auto term = [&](std::int64_t at) { return Log ? dy[at] : y[at] * dy[at]; };
  Chunk<T> dots = Chunk<T>::Zero(), part;
  if (apart == 1) {
    T lanes[chunk] = {}, dot = 0;
    for (std::int64_t c = 0; c < of.cells; ++c) lanes[c % chunk] += term(c);
    for (const T lane : lanes) dot += lane;
    dots.setConstant(dot);
  } else {
    for (std::int64_t c = 0; c < of.cells; ++c)
      for (std::int64_t i = 0; i < places; ++i) dots[i] += term(c * apart + i);
  }
  const std::int64_t rows = apart == 1 ? divide_up(of.cells, chunk) : of.cells;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * (apart == 1 ? chunk : apart);
    const std::int64_t count = apart == 1 ? std::min(chunk, of.cells - first) : places;
    const T* factors = y + first;
    if (Log) {
      exponentials(factors, T(0), count, part);
      factors = part.data();
    }
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) {
      const T d = Log ? dy[first + i] - factors[i] * dots[i] : factors[i] * (dy[first + i] - dots[i]);
      dx[first + i] = Adds ? dx[first + i] + d : d;
    }
  }
}

template <class T>
void backward(ThreadPool& pool, const Args& args, const AxisCells& of, bool log, bool adds) {
  with_flag(adds, [&](auto add) {
    with_flag(log, [&](auto of_log) {
      split_places(pool, args.dy.shape, of, [&](std::int64_t n, std::int64_t first, std::int64_t places) {
        backward_chunk<T, decltype(add)::value, decltype(of_log)::value>(image<const T>(args.y, n) + first,
                                                                         image<const T>(args.dy, n) + first,
                                                                         image<T>(args.dx[0], n) + first, of, places);
      });
    });
  });
}

}  // namespace

Lowered lower(const Softmax& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = in_place_unit(spec);
  const AxisCells of = along(spec.y.shape, op);
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec, [&pool = context.pool, of, log = op.log](const Args& args) { forward<T>(pool, args, of, log); },
        [&pool = context.pool, of, log = op.log, adds = adds_dx(spec, 0)](const Args& args) {
          if (wanted(args, 0)) backward<T>(pool, args, of, log, adds);
        });
  });
  return unit;
}

}  // namespace lamina::eigen
