// y = exp(x - max) / sum along an axis, or its logarithm. Vectors are the adjacent cells of one sum, or strips of
// places side by side, with a loop over their cells.

#include "exponentials.h"
#include "lib/core/units/along.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t strip = 4 * chunk;  // places that are adjacent in memory

template <class T>
void forward_vector(const T* x, Output<T>& output, T* y, std::int64_t first, std::int64_t cells, bool log) {
  Room<T> room;
  T* const exponentials_of_x = cells <= elements_of_room ? room.elements : y + first;
  const T largest = largest_element(x, cells);
  Chunk<T> part, sums = Chunk<T>::Zero();
  for (std::int64_t c = 0; c < cells; c += chunk) {
    const std::int64_t count = std::min(chunk, cells - c);
    exponentials(x + c, largest, count, part);
    sums += part;
    if (!log) store(part, count, exponentials_of_x + c);
  }
  if (log) {
    const T log_sum = std::log(sums.sum());
    return write_each(output, first, cells, false, [=](std::int64_t c) { return x[c] - largest - log_sum; });
  }
  const T inverse_sum = 1 / sums.sum();
  write_each(output, first, cells, false, [=](std::int64_t c) { return exponentials_of_x[c] * inverse_sum; });
}

template <class T>
void forward_strip(const T* x, Output<T>& output, T* y, std::int64_t first, const AxisCells& of, std::int64_t places,
                   bool log) {
  const std::int64_t apart = of.inner;
  const std::int64_t whole = round_up(places, chunk);
  const auto two_rows = static_cast<std::uintptr_t>(2 * apart) * sizeof(T);
  y += first;
  T largest[strip], sums[strip];
  std::fill_n(sums, whole, T(0));
  std::fill(std::copy_n(x, places, largest), largest + whole, T(0));
  for (std::int64_t c = 1; c < of.cells; ++c) {
    prefetch(x + c * apart, places, two_rows);
    take_larger(largest, x + c * apart, places);
  }
  for (std::int64_t c = 0; c < of.cells; ++c) {
    if (!log) prefetch<true>(y + c * apart, places, two_rows);
    for (std::int64_t i = 0; i < places; i += chunk) {
      const std::int64_t at = c * apart + i, count = std::min(chunk, places - i);
      Chunk<T> part;
      exponentials(x + at, Eigen::Map<const Chunk<T>>(largest + i), count, part);
      Eigen::Map<Chunk<T>>(sums + i) += part;
      if (!log) store(part, count, y + at);
    }
  }
  for (std::int64_t i = 0; i < places; i += chunk) {
    Eigen::Map<Chunk<T>> part(sums + i);
    if (log)
      part = part.log();
    else
      part = part.inverse();
  }
  for (std::int64_t c = 0; c < of.cells; ++c) {
    const T* const from = x + c * apart;
    T* const to = y + c * apart;
    if (log) {
      write_each(output, first + c * apart, places, false,
                 [=, &largest, &sums](std::int64_t i) { return from[i] - largest[i] - sums[i]; });
      continue;
    }
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < places; ++i) to[i] *= sums[i];
  }
}

/// Calls work(n, first place's element, places) for strips of places that cover every image once. If the cells of a
/// place are adjacent, a strip has one place.
template <class Work>
void split_places(ThreadPool& pool, const Shape& shape, const AxisCells& of, Work&& work) {
  const std::int64_t share = std::int64_t{shape.n} * of.outer * of.inner / pool.threads() / chunk * chunk;
  const std::int64_t size = std::clamp(share, chunk, strip);
  const std::int64_t grain = std::max<std::int64_t>(1, 4096 / (of.cells * std::min<std::int64_t>(size, of.inner)));
  split_chunks(pool, {shape.n * of.outer, of.cells, 1, of.inner}, size, grain,
               [&](int, std::int64_t i, std::int64_t first, std::int64_t places) {
                 work(i / of.outer, i % of.outer * of.cells * of.inner + first, places);
               });
}

template <class T>
void forward(ThreadPool& pool, const Args& args, const AxisCells& of, bool log) {
  if (of.inner == 1)
    return pool.split(std::int64_t{args.y.shape.n} * of.outer, std::max<std::int64_t>(1, 4096 / of.cells),
                      [&](std::int64_t i, std::int64_t end) {
                        Output<T> y(args.y, !log && of.cells > elements_of_room, {&args.x[0]}, of.cells);
                        for (; i < end; ++i) {
                          const std::int64_t n = i / of.outer, first = i % of.outer * of.cells;
                          forward_vector(image<const T>(args.x[0], n) + first, y, args.y.as<T>(),
                                         n * args.y.pitch + first, of.cells, log);
                        }
                      });
  split_places(pool, args.y.shape, of, [&](std::int64_t n, std::int64_t first, std::int64_t places) {
    Output<T> y(args.y, !log, {&args.x[0]}, of.inner);
    forward_strip(image<const T>(args.x[0], n) + first, y, args.y.as<T>(), n * args.y.pitch + first, of, places, log);
  });
}

/// dx = y (dy - sum of y dy) or, with `Log`, dx = dy - exp(y) (sum of dy), for adjacent cells or for a strip.
template <bool Log, class T>
void backward_strip(const T* y, const T* dy, T* dx, const AxisCells& of, std::int64_t places, bool adds) {
  const auto term = [&](std::int64_t at) { return Log ? dy[at] : y[at] * dy[at]; };
  T dots[strip];
  const bool is_vector = of.inner == 1;
  if (is_vector) {
    std::fill_n(dots, std::min<std::int64_t>(chunk, of.cells), static_cast<T>(interleaved_sum<T>(of.cells, term)));
  } else {
    std::fill_n(dots, places, T(0));
    for (std::int64_t c = 0; c < of.cells; ++c)
      for (std::int64_t i = 0; i < places; ++i) dots[i] += term(c * of.inner + i);
  }
  const std::int64_t rows = is_vector ? 1 : of.cells, size = is_vector ? of.cells : places;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < size; i += chunk) {
      const std::int64_t first = row * of.inner + i, count = std::min(chunk, size - i);
      const T *factors = y + first, *const dot = is_vector ? dots : dots + i;
      Chunk<T> part;
      if (Log) {
        exponentials(factors, T(0), count, part);
        factors = part.data();
      }
      put_each(dx + first, count, adds, [factors, dot, d = dy + first](std::int64_t k) {
        return Log ? d[k] - factors[k] * dot[k] : factors[k] * (d[k] - dot[k]);
      });
    }
}

template <class T>
void backward(ThreadPool& pool, const Args& args, const AxisCells& of, bool log, bool adds) {
  with_flag(log, [&](auto of_log) {
    split_places(pool, args.dy.shape, of, [&](std::int64_t n, std::int64_t first, std::int64_t places) {
      backward_strip<of_log>(image<const T>(args.y, n) + first, image<const T>(args.dy, n) + first,
                             image<T>(args.dx[0], n) + first, of, places, adds);
    });
  });
}

}  // namespace

Lowered lower(const Softmax& op, const Spec& spec, const Choice&, const Context& context) {
  const AxisCells of = along(spec.y.shape, op);
  return with_type(spec.y.dtype, [&]<class T>() {
    return with_steps(
        in_place_unit(spec), spec,
        [&pool = context.pool, of, log = op.log](const Args& args) { forward<T>(pool, args, of, log); },
        [&pool = context.pool, of, log = op.log, adds = adds_dx(spec, 0)](const Args& args) {
          if (wanted(args, 0)) backward<T>(pool, args, of, log, adds);
        });
  });
}

}  // namespace lamina::eigen
