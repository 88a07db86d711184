// The mean, sum or maximum over axes of an image (AxisCells); a GlobalAveragePool is a mean. If elements of y lie side
// by side in x, vectors are strips of y, and a loop runs over the cells. Otherwise vectors are adjacent cells. Sums of
// many terms are in double, in an order that does not depend on the number of threads. In training forward saves the
// places of maxima.

#include <algorithm>

#include "exponentials.h"
#include "lib/backends/eigen/half/elements.h"
#include "lib/core/units/along.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t least_share = 4096;  // elements; less is not worth waking a thread
constexpr std::int64_t strip = 256;         // elements of y

/// Whether a is larger than b. A NaN is larger than any number.
template <class T>
bool is_larger(T a, T b) {
  return !(a <= b) & (b == b);
}

template <class T>
void sum_strip(const T* x, const AxisCells& of, std::int64_t count, double divisor, T* y) {
  constexpr std::int64_t some = 256;  // terms that are summed in their own type
  double all[strip] = {};
  for (std::int64_t first = 0; first < of.cells; first += some) {
    T part[strip] = {};
    for (std::int64_t k = first; k < std::min<std::int64_t>(first + some, of.cells); ++k)
      for (std::int64_t i = 0; i < count; ++i) part[i] += x[k * of.inner + i];
    for (std::int64_t i = 0; i < count; ++i) all[i] += static_cast<double>(part[i]);
  }
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<T>(all[i] / divisor);
}

template <class T>
void largest_of_strip(const T* x, const AxisCells& of, std::int64_t count, T* y, std::int32_t* places) {
  T best[strip];
  std::int32_t place[strip] = {};
  std::copy_n(x, count, best);
  for (std::int32_t k = 1; k < of.cells; ++k) {
    const T* const row = x + std::int64_t{k} * of.inner;
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) {
      const bool wins = is_larger(row[i], best[i]);
      best[i] = wins ? row[i] : best[i];
      place[i] = wins ? k : place[i];
    }
  }
  std::copy_n(best, count, y);
  if (places != nullptr) std::copy_n(place, count, places);
}

/// Whether `is` is true of any of adjacent elements.
template <class T, class Is>
bool any(const T* x, std::int64_t count, const Is& is) {
  int found = 0;
  for (std::int64_t i = 0; i < count; ++i) found |= is(x[i]) ? 1 : 0;
  return found != 0;
}

/// The place of the first of adjacent elements of which `is` is true, or `count`.
template <class T, class Is>
std::int64_t first_place(const T* x, std::int64_t count, const Is& is) {
  constexpr std::int64_t some = 32;
  std::int64_t i = 0;
  while (i + some <= count && !any(x + i, some, is)) i += some;
  while (i < count && !is(x[i])) ++i;
  return i;
}

/// The place of the first largest of adjacent elements.
template <class T>
std::int64_t place_of_largest(const T* x, std::int64_t count) {
  constexpr std::int64_t block = 1024;
  T largest = x[0];
  std::int64_t begin = 0;
  for (std::int64_t at = 0; at < count; at += block) {
    const std::int64_t size = std::min(block, count - at);
    const auto is_nan = [](T v) { return v != v; };
    if (any(x + at, size, is_nan)) return at + first_place(x + at, size, is_nan);
    const T its = largest_element(x + at, size);
    if (its > largest) largest = its, begin = at;
  }
  return begin + first_place(x + begin, count - begin, [largest](T v) { return v == largest; });
}

/// One element of y, from adjacent cells of x. `repeat`: elements of x from one repeat to the next.
template <class T>
void reduce_rows(const T* x, const AxisCells& of, std::int64_t repeat, bool largest, double divisor, T* y,
                 std::int32_t* place) {
  const std::int64_t cells = of.cells;
  double sum = 0;
  T best = x[0];
  std::int64_t at = 0;
  for (std::int64_t r = 0; r < of.repeats; ++r, x += repeat) {
    if (!largest) {
      sum += interleaved_sum<T>(cells, [x](std::int64_t i) { return x[i]; });
      continue;
    }
    const std::int64_t k = place_of_largest(x, cells);
    if (r > 0 && !is_larger(x[k], best)) continue;
    best = x[k];
    at = r * cells + k;
  }
  *y = largest ? best : static_cast<T>(sum / divisor);
  if (largest && place != nullptr) *place = static_cast<std::int32_t>(at);
}

template <class T>
void forward(ThreadPool& pool, const Args& args, const AxisCells& of, bool largest, double divisor) {
  const std::int64_t strips = divide_up(of.inner, strip), image_of_y = std::int64_t{of.outer} * of.inner;
  const std::int64_t terms = std::int64_t{of.repeats} * of.cells * std::min<std::int64_t>(of.inner, strip);
  auto* const saved = static_cast<std::int32_t*>(args.saved);
  pool.each(std::int64_t{args.y.shape.n} * of.outer * strips, std::max<std::int64_t>(1, least_share / terms),
            [&](std::int64_t part) {
              const std::int64_t first = part % strips * strip, n = part / strips / of.outer;
              const std::int64_t outer = part / strips % of.outer, at = outer * of.inner + first;
              const T* const x = image<const T>(args.x[0], n) + outer * of.cells * of.inner + first;
              T* const y = image<T>(args.y, n) + at;
              std::int32_t* const places = saved == nullptr ? nullptr : saved + n * image_of_y + at;
              const std::int64_t count = std::min(strip, of.inner - first);
              if (of.inner == 1)
                reduce_rows(x, of, std::int64_t{of.outer} * of.cells, largest, divisor, y, places);
              else if (largest)
                largest_of_strip(x, of, count, y, places);
              else
                sum_strip(x, of, count, divisor, y);
            });
}

/// A thread writes rows of dx. A row has one cell of each of `inner` adjacent elements of y, or the adjacent cells of
/// one element of y.
template <class T>
void backward(ThreadPool& pool, const Args& args, const AxisCells& of, bool largest, T divisor, bool adds) {
  const bool in_row = of.inner == 1;
  const std::int64_t cells = of.cells, size = in_row ? cells : of.inner, rows = in_row ? 1 : cells;
  const std::int64_t image_of_y = std::int64_t{of.outer} * of.inner, in_image = of.repeats * of.outer * rows;
  const auto* const saved = static_cast<const std::int32_t*>(args.saved);
  pool.split(args.dy.shape.n * in_image, std::max<std::int64_t>(1, least_share / size),
             [&](std::int64_t from, std::int64_t to) {
               Output<T> dx(args.dx[0], adds, {}, size);
               for (std::int64_t row = from; row < to; ++row) {
                 const std::int64_t n = row / in_image, at = row % in_image, outer = at / rows % of.outer;
                 const std::int64_t place = at / rows / of.outer * cells + at % rows;  // of the row's first element
                 const T* const dy = image<const T>(args.dy, n) + outer * of.inner;
                 const std::int32_t* const winner = largest ? saved + n * image_of_y + outer * of.inner : nullptr;
                 const auto put_each = [&](const auto& value) {
                   write_each(dx, n * args.dx[0].pitch + at * size, size, adds, value);
                 };
                 if (in_row && largest)
                   put_each([i0 = winner[0] - place, d = dy[0]](std::int64_t i) { return i == i0 ? d : T(0); });
                 else if (in_row)
                   put_each([share = dy[0] / divisor](std::int64_t) { return share; });
                 else if (largest)
                   put_each([=](std::int64_t i) { return place == winner[i] ? dy[i] : T(0); });
                 else
                   put_each([=](std::int64_t i) { return dy[i] / divisor; });
               }
             });
}

}  // namespace

Lowered lower(const Reduce& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  const AxisCells of = along(spec.x[0].shape, op);
  const bool largest = op.by == ReduceBy::max;
  const double divisor = op.by == ReduceBy::mean ? static_cast<double>(of.repeats) * of.cells : 1;
  if (largest && spec.mode == Mode::training)
    unit.saved_bytes = static_cast<std::size_t>(spec.y.shape.count()) * sizeof(std::int32_t);
  return with_type(spec.y.dtype, [&]<class T>() {
    return with_steps(
        unit, spec,
        [&pool = context.pool, of, largest, divisor](const Args& args) {
          forward<T>(pool, args, of, largest, divisor);
        },
        [&pool = context.pool, of, largest, divisor, adds = adds_dx(spec, 0)](const Args& args) {
          if (wanted(args, 0)) backward<T>(pool, args, of, largest, static_cast<T>(divisor), adds);
        });
  });
}

Lowered lower(const GlobalAveragePool&, const Spec& spec, const Choice& choice, const Context& context) {
  return lower(Reduce{.by = ReduceBy::mean, .rows = true, .columns = true}, spec, choice, context);
}

}  // namespace lamina::eigen
