// Finds the largest cell of each window: first the largest of each column, then the largest of these. In training saves
// the place of the first maximum in its window. Halves are widened, and rounded, plane by plane.

#include <limits>
#include <type_traits>

#include "lib/backends/eigen/half/elements.h"
#include "lib/core/numbers/rounding.h"
#include "window.h"

namespace lamina::eigen {
namespace {

/// An integer as wide as an element, so that a comparison of elements selects integers.
template <class T>
using Place = std::conditional_t<sizeof(T) == sizeof(std::int32_t), std::int32_t, std::int64_t>;

/// Whether `value` replaces the largest so far: because it is above, or is the first NaN.
template <class Values>
auto above(const Values& value, const Values& largest) {
  return ((value > largest) | (value != value)) & (largest == largest);
}

/// One thread's rows, one for each row of windows: the largest cell of each column, and its place in the window.
template <class T>
struct Rows {
  T* largest;
  Place<T>* place;

  static std::int64_t cells(const Windows& g) { return g.P * g.row_cells() + 1; }
  static std::size_t bytes(const Windows& g) {
    return static_cast<std::size_t>(round_up(2 * cells(g), 16)) * sizeof(T);
  }

  Rows(void* workspace, int part, const Windows& g)
      : largest(reinterpret_cast<T*>(static_cast<char*>(workspace) + static_cast<std::size_t>(part) * bytes(g))),
        place(reinterpret_cast<Place<T>*>(largest + cells(g))) {
    std::fill_n(largest, cells(g), -std::numeric_limits<T>::infinity());
    std::fill_n(place, cells(g), outside);
  }

  static constexpr Place<T> outside =
      std::numeric_limits<Place<T>>::max() / 2;  // place of a padding: after every place in a window
};

template <class T>
void find_largest(const Windows& g, const T* x, T* y, const Rows<T>& rows) {
  reduce_windows(
      g, x, rows.largest, -std::numeric_limits<T>::infinity(),
      [](auto& largest, auto cells) { largest = above(cells, largest) ? cells : largest; },
      [&](std::int64_t p, std::int64_t q, auto largest, auto count) {
        Lanes<T, count>::store(y + p * g.Q + q, largest);
      });
}

/// Finds the largest cells, and the first place of each in its window. If no cell is above minus infinity, the place is
/// the first one inside the image.
template <class T, class Winner>
void find_winners(const Windows& g, const T* x, T* y, Winner* winners, const Rows<T>& rows) {
  const std::int64_t pitch = g.row_cells();
  for_windows(
      g, x,
      [&](std::int64_t p, const RowRange& range, std::int64_t w, auto count) {
        using Values = Lanes<T, count>;
        using Places = Lanes<Place<T>, count>;
        typename Values::Values largest = typename Values::Values{} - std::numeric_limits<T>::infinity();
        auto row = static_cast<Place<T>>((range.from - g.first_row(p)) * g.S);
        typename Places::Values place = typename Places::Values{} + row;
        for (std::int64_t h = range.from; h < range.to; ++h, row += static_cast<Place<T>>(g.S)) {
          const auto cells = Values::load(x + h * g.W + w);
          const auto taken = above(cells, largest);
          largest = taken ? cells : largest;
          place = taken ? typename Places::Values{} + row : place;
        }
        Values::store(rows.largest + p * pitch + g.pad_w + w, largest);
        Places::store(rows.place + p * pitch + g.pad_w + w, place);
      },
      [&](std::int64_t p, std::int64_t q, std::int64_t stride, auto count) {
        using Values = Lanes<T, count>;
        using Places = Lanes<Place<T>, count>;
        const std::int64_t at = p * pitch + q * stride;
        auto largest = Values::load_strided(rows.largest + at, stride);
        auto place = Places::load_strided(rows.place + at, stride);
        for (std::int64_t s = 1; s < g.S; ++s) {
          const auto cells = Values::load_strided(rows.largest + at + s, stride);
          const auto places = Places::load_strided(rows.place + at + s, stride) + static_cast<Place<T>>(s);
          const auto equal = (cells == largest) | ((cells != cells) & (largest != largest));
          const auto taken = above(cells, largest) | (equal & (places < place));
          largest = taken ? cells : largest;
          place = taken ? places : place;
        }
        Values::store(y + p * g.Q + q, largest);
        Places::store(winners + p * g.Q + q, place);
      });
}

/// Adds each output's gradient to its winner, one by one, because windows of a plane may overlap. `steps[i]` is the
/// offset of cell i from a window's first cell.
template <class T, class Winner>
void backward_plane(const Windows& g, const std::int64_t* steps, const T* dy, const Winner* winners, T* dx) {
  for (std::int64_t p = 0; p < g.P; ++p) {
    const std::int64_t first = g.first_row(p) * g.W - g.pad_w;
    for (std::int64_t q = 0; q < g.Q; ++q) dx[first + q * g.stride_w + steps[winners[p * g.Q + q]]] += dy[p * g.Q + q];
  }
}

/// Widened planes of a thread, at the end of the workspace: of x or its gradient, and of y or its gradient.
template <class T>
struct WidePlanes {
  T *x, *y;

  static std::size_t bytes(const Windows& g, DType dtype) {
    return is_half(dtype) ? static_cast<std::size_t>(g.H * g.W + g.P * g.Q) * sizeof(T) : 0;
  }
  WidePlanes(void* first, int part, const Windows& g)
      : x(static_cast<T*>(first) + part * (g.H * g.W + g.P * g.Q)), y(x + g.H * g.W) {}
};

/// Calls plane(x, y, i, rows) for each plane i.
template <class T, class Plane>
void forward(ThreadPool& pool, const Args& args, const Windows& g, Plane&& plane) {
  const bool widens = is_half(args.y.dtype);
  const Shape& shape = args.y.shape;
  pool.split_parts(std::int64_t{shape.n} * shape.c, 1, [&](int part, std::int64_t from, std::int64_t to) {
    const Rows<T> rows(args.workspace, part, g);
    void* const after =
        static_cast<char*>(args.workspace) + static_cast<std::size_t>(pool.threads()) * Rows<T>::bytes(g);
    const WidePlanes<T> wide(after, part, g);
    for (std::int64_t i = from; i < to; ++i) {
      const std::int64_t n = i / shape.c, c = i % shape.c;
      const std::int64_t x_at = n * args.x[0].pitch + c * g.H * g.W, y_at = n * args.y.pitch + c * g.P * g.Q;
      if (widens) take_numbers(wide.x, args.x[0], x_at, g.H * g.W);
      plane(widens ? wide.x : args.x[0].as<const T>() + x_at, widens ? wide.y : args.y.as<T>() + y_at, i, rows);
      if (widens) put_numbers(args.y, y_at, wide.y, g.P * g.Q);
    }
  });
}

template <class T, class Winner>
void backward(ThreadPool& pool, const Args& args, const Windows& g, bool adds) {
  if (!wanted(args, 0)) return;
  const Shape& shape = args.dy.shape;
  auto* const steps = static_cast<std::int64_t*>(args.workspace);
  for (std::int64_t i = 0; i < g.R * g.S; ++i) steps[i] = i / g.S * g.W + i % g.S;
  const bool widens = is_half(args.dy.dtype);
  pool.split_parts(std::int64_t{shape.n} * shape.c, 1, [&](int part, std::int64_t from, std::int64_t to) {
    const WidePlanes<T> wide(steps + g.R * g.S, part, g);
    for (std::int64_t i = from; i < to; ++i) {
      const std::int64_t n = i / shape.c, c = i % shape.c;
      const std::int64_t dx_at = n * args.dx[0].pitch + c * g.H * g.W, dy_at = n * args.dy.pitch + c * g.P * g.Q;
      T* const dx = widens ? wide.x : args.dx[0].as<T>() + dx_at;
      if (widens) take_numbers(wide.y, args.dy, dy_at, g.P * g.Q);
      if (widens && adds) take_numbers(wide.x, args.dx[0], dx_at, g.H * g.W);
      if (!adds) std::fill_n(dx, g.H * g.W, T(0));
      backward_plane(g, steps, widens ? wide.y : args.dy.as<const T>() + dy_at,
                     static_cast<const Winner*>(args.saved) + i * g.P * g.Q, dx);
      if (widens) put_numbers(args.dx[0], dx_at, wide.x, g.H * g.W);
    }
  });
}

template <class T, class Winner>
Lowered lower_as(const Spec& spec, const Windows& g, ThreadPool& pool) {
  Lowered unit = empty_unit(spec);
  const auto threads = static_cast<std::size_t>(pool.threads());
  const std::size_t wide = WidePlanes<T>::bytes(g, spec.y.dtype) * threads;
  const std::size_t workspace = Rows<T>::bytes(g) * threads + wide;
  const auto largest = [&pool, g](const Args& args) {
    forward<T>(pool, args, g,
               [&](const T* x, T* y, std::int64_t, const Rows<T>& rows) { find_largest(g, x, y, rows); });
  };
  if (spec.mode == Mode::inference) {
    unit.steps.push_back(step({Pass::forward}, "direct", largest, workspace));
    return unit;
  }
  const auto winners = [&pool, g](const Args& args) {
    forward<T>(pool, args, g, [&](const T* x, T* y, std::int64_t i, const Rows<T>& rows) {
      find_winners(g, x, y, static_cast<Winner*>(args.saved) + i * g.P * g.Q, rows);
    });
  };
  unit.saved_bytes = static_cast<std::size_t>(spec.y.shape.count()) * sizeof(Winner);
  // Recompute finds winners, too, so that among zeros of both signs the same zero wins again.
  return with_steps(
      unit, spec, winners,
      [&pool, g, adds = adds_dx(spec, 0)](const Args& args) { backward<T, Winner>(pool, args, g, adds); }, workspace,
      static_cast<std::size_t>(g.R * g.S) * sizeof(std::int64_t) + wide);
}

}  // namespace

Lowered lower(const MaxPool& op, const Spec& spec, const Choice&, const Context& context) {
  const Windows windows(op, spec.x[0].shape, spec.y.shape);
  return with_type(is_half(spec.y.dtype) ? DType::f32 : spec.y.dtype, [&]<class T>() {
    return windows.R * windows.S <= 255 ? lower_as<T, std::uint8_t>(spec, windows, context.pool)
                                        : lower_as<T, std::int32_t>(spec, windows, context.pool);
  });
}

}  // namespace lamina::eigen
