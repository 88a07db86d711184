// The largest cell of each window. In training the place of the first maximum in its window is saved: each input row is
// reduced along its columns once, for all windows that hold it; windows are then reduced along the rows. Halves are
// widened, and rounded, plane by plane.

#include <limits>
#include <utility>

#include "lib/backends/eigen/half/elements.h"
#include "lib/core/numbers/rounding.h"
#include "window.h"

namespace lamina::eigen {
namespace {

/// Vectors of elements, and of integers of the same width, so that a comparison of elements selects integers. Written
/// by hand: the compiler gives up on a chain of such selections.
template <class T>
struct Vectors;
template <>
struct Vectors<float> {
  using Lane = std::int32_t;
  using Values = float __attribute__((vector_size(32)));
  using Lanes = Lane __attribute__((vector_size(32)));
  static constexpr std::int64_t size = 8;
};
template <>
struct Vectors<double> {
  using Lane = std::int64_t;
  using Values = double __attribute__((vector_size(32)));
  using Lanes = Lane __attribute__((vector_size(32)));
  static constexpr std::int64_t size = 4;
};

template <class T>
using Lane = typename Vectors<T>::Lane;

template <class Vector, class Element>
inline __attribute__((always_inline)) Vector load(const Element* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

constexpr std::int64_t block = 8;  // elements; rows are rounded up to whole blocks and need no scalar remainder

std::int64_t whole_blocks(std::int64_t count) { return round_up(count, block); }

/// One thread's rows, in the workspace. Each has room for whole blocks.
template <class T>
struct Rows {
  T* padded;              // one input row between its paddings
  T* phases;              // the padded row, phase by phase; `padded` itself if the stride is 1
  T* best;                // R rows: the largest cell per window of input row h at h % R
  Lane<T>* place;         // R rows: the column of `best` in the window
  Lane<T>* first_place;   // the first column of each window inside the image
  Lane<T>* lowest_place;  // the first place inside the image, of each window of an output row
  T* window_best;         // largest cells of the current output row
  Lane<T>* window_place;

  static std::int64_t phase_pitch(const Windows& g) { return whole_blocks(g.Q) + whole_blocks((g.S - 1) / g.stride_w); }
  static std::int64_t padded_cells(const Windows& g) {
    return whole_blocks(std::max(g.row_cells(), phase_pitch(g) * g.stride_w));
  }
  static std::size_t bytes(const Windows& g) {
    const std::int64_t cells = padded_cells(g) + phase_pitch(g) * g.stride_w + (2 * g.R + 4) * whole_blocks(g.Q);
    return static_cast<std::size_t>(cells) * sizeof(T);
  }

  Rows(void* workspace, int part, const Windows& g) {
    auto* at = reinterpret_cast<T*>(static_cast<char*>(workspace) + static_cast<std::size_t>(part) * bytes(g));
    const auto take = [&at](std::int64_t count) { return std::exchange(at, at + count); };
    const auto take_lanes = [&](std::int64_t count) { return reinterpret_cast<Lane<T>*>(take(count)); };
    const std::int64_t q = whole_blocks(g.Q);
    padded = take(padded_cells(g));
    phases = take(phase_pitch(g) * g.stride_w);
    std::fill(padded, at, -std::numeric_limits<T>::infinity());
    if (g.stride_w == 1) phases = padded;
    best = take(g.R * q);
    place = take_lanes(g.R * q);
    first_place = take_lanes(q);
    lowest_place = take_lanes(q);
    window_best = take(q);
    window_place = take_lanes(q);
    for (std::int64_t i = 0; i < q; ++i)
      first_place[i] = static_cast<Lane<T>>(std::max<std::int64_t>(0, -g.first_column(i)));
  }
};

template <class T>
void cut_phases(const Windows& g, const T* x, const Rows<T>& rows) {
  prefetch_ahead(x, g.W);
  std::copy_n(x, g.columns_used(), rows.padded + g.pad_w);
  const std::int64_t pitch = Rows<T>::phase_pitch(g);
  if (g.stride_w == 2) {
    T *even = rows.phases, *odd = rows.phases + pitch;
    const T* padded = rows.padded;
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < pitch; ++i) {
      even[i] = padded[2 * i];
      odd[i] = padded[2 * i + 1];
    }
  } else if (g.stride_w > 2) {
    for (std::int64_t j = 0; j < g.stride_w; ++j)
      for (std::int64_t i = 0; i < pitch; ++i) rows.phases[j * pitch + i] = rows.padded[i * g.stride_w + j];
  }
}

/// One row of candidates for the largest cell of each window: the cells, and their places in the window, `offset` +
/// `place`.
template <class T>
struct Candidates {
  const T* value;
  const Lane<T>* place;
  Lane<T> offset;
};

/// The largest cells so far, and their places.
template <class T>
struct Largest {
  T* value;
  Lane<T>* place;
};

/// Takes the first largest cell of a few rows of candidates and, if `Continues`, of those in `to`. If no cell is above
/// minus infinity, the place is `lowest`. Without `HavePlaces` a candidate's place is its `offset` alone.
template <class T, bool HavePlaces, bool Continues, std::size_t... k>
void reduce(const Largest<T>& to, const Candidates<T>* from, const Lane<T>* lowest, std::int64_t count,
            std::index_sequence<k...>) {
  using Values = typename Vectors<T>::Values;
  using Lanes = typename Vectors<T>::Lanes;
  for (std::int64_t i = 0; i < count; i += Vectors<T>::size) {
    Values largest = Values{} - std::numeric_limits<T>::infinity();
    if constexpr (Continues) largest = load<Values>(to.value + i);
    Lanes at = load<Lanes>((Continues ? to.place : lowest) + i);
    const auto consider = [&](const Candidates<T>& row) {
      const Values value = load<Values>(row.value + i);
      const Lanes above = ~(value <= largest);           // or a NaN
      const Lanes taken = above & (largest == largest);  // a NaN stays, so that the first one wins
      largest = taken ? value : largest;
      Lanes place = Lanes{} + row.offset;
      if constexpr (HavePlaces) place += load<Lanes>(row.place + i);
      at = taken ? place : at;
    };
    (consider(from[k]), ...);
    std::memcpy(to.value + i, &largest, sizeof largest);
    std::memcpy(to.place + i, &at, sizeof at);
  }
}

/// reduce() for any number of rows, three at a time; `row(k)` gives the k-th.
template <class T, bool HavePlaces, class Row>
void reduce_rows(const Largest<T>& to, std::int64_t rows, const Lane<T>* lowest, std::int64_t count, Row&& row) {
  for (std::int64_t k = 0; k < rows; k += 3) {
    const std::int64_t few = std::min<std::int64_t>(3, rows - k);
    Candidates<T> from[3] = {};
    for (std::int64_t j = 0; j < few; ++j) from[j] = row(k + j);
    with_flag(k > 0, [&](auto continues) {
      constexpr bool go_on = decltype(continues)::value;
      if (few == 3) return reduce<T, HavePlaces, go_on>(to, from, lowest, count, std::make_index_sequence<3>());
      if (few == 2) return reduce<T, HavePlaces, go_on>(to, from, lowest, count, std::make_index_sequence<2>());
      reduce<T, HavePlaces, go_on>(to, from, lowest, count, std::make_index_sequence<1>());
    });
  }
}

/// The largest cell of every window of one input row, and its column.
template <class T>
void reduce_columns(const Windows& g, const T* x, std::int64_t h, const Rows<T>& rows) {
  cut_phases(g, x + h * g.W, rows);
  const std::int64_t pitch = Rows<T>::phase_pitch(g), slot = h % g.R * whole_blocks(g.Q);
  reduce_rows<T, false>({rows.best + slot, rows.place + slot}, g.S, rows.first_place, whole_blocks(g.Q),
                        [&](std::int64_t s) -> Candidates<T> {
                          const T* cells = rows.phases + s % g.stride_w * pitch + s / g.stride_w;
                          return {cells, nullptr, static_cast<Lane<T>>(s)};
                        });
}

template <class T>
void largest_cells(const Windows& g, const T* x, T* y, T* padded) {
  reduce_windows(
      g, x, padded, -std::numeric_limits<T>::infinity(),
      [](auto& largest, auto cells) {
        const auto stays = (cells <= largest) | (largest != largest);  // a NaN is not below, and stays
        largest = stays ? largest : cells;
      },
      [&](std::int64_t p, std::int64_t q, auto largest, auto count) {
        Lanes<T, count>::store(y + p * g.Q + q, largest);
      });
}

/// Largest cells, and their places.
template <class T, class Winner>
void find_winners(const Windows& g, const T* x, T* y, Winner* winners, const Rows<T>& rows) {
  std::int64_t reduced = 0;  // input rows reduced so far
  for (std::int64_t p = 0; p < g.P; ++p) {
    const std::int64_t first = g.first_row(p);
    const std::int64_t from = std::max<std::int64_t>(0, first), to = std::min(g.H, first + g.R);
    for (reduced = std::max(reduced, from); reduced < to; ++reduced) reduce_columns<T>(g, x, reduced, rows);

    // If all cells are minus infinity, the place is that of the first row inside the image.
    for (std::int64_t i = 0; i < whole_blocks(g.Q); ++i)
      rows.lowest_place[i] = static_cast<Lane<T>>((from - first) * g.S) + rows.first_place[i];
    reduce_rows<T, true>({rows.window_best, rows.window_place}, to - from, rows.lowest_place, whole_blocks(g.Q),
                         [&](std::int64_t k) -> Candidates<T> {
                           const std::int64_t slot = (from + k) % g.R * whole_blocks(g.Q);
                           return {rows.best + slot, rows.place + slot, static_cast<Lane<T>>((from + k - first) * g.S)};
                         });
    std::copy_n(rows.window_best, g.Q, y + p * g.Q);
    for (std::int64_t q = 0; q < g.Q; ++q) winners[p * g.Q + q] = static_cast<Winner>(rows.window_place[q]);
  }
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

/// Widened planes of a thread, at the end of its workspace: of x or its gradient, and of y or its gradient.
template <class T>
struct WidePlanes {
  T *x, *y;

  static std::size_t bytes(const Windows& g, DType dtype) {
    return is_half(dtype) ? static_cast<std::size_t>(g.H * g.W + g.P * g.Q) * sizeof(T) : 0;
  }
  WidePlanes(void* first, int part, const Windows& g)
      : x(static_cast<T*>(first) + part * (g.H * g.W + g.P * g.Q)), y(x + g.H * g.W) {}
};

/// The workspace of a thread for largest_cells.
template <class T>
std::size_t padded_bytes(const Windows& g) {
  return static_cast<std::size_t>(round_up(g.P * g.row_cells() + 1, 16)) * sizeof(T);
}

/// Calls plane(x, y, i) for each plane i of a thread, whose workspace `make(at)` has taken.
template <class T, class Make>
void forward(ThreadPool& pool, const Args& args, const Windows& g, std::size_t bytes, Make&& make) {
  const bool widens = is_half(args.y.dtype);
  const Shape& shape = args.y.shape;
  const std::int64_t planes = std::int64_t{shape.n} * shape.c;
  pool.run([&](int part) {
    const auto plane = make(part);
    const WidePlanes<T> wide(static_cast<char*>(args.workspace) + static_cast<std::size_t>(pool.threads()) * bytes,
                             part, g);
    const std::int64_t last = planes * (part + 1) / pool.threads();
    for (std::int64_t i = planes * part / pool.threads(); i < last; ++i) {
      const std::int64_t n = i / shape.c, c = i % shape.c;
      const std::int64_t x_at = n * args.x[0].pitch + c * g.H * g.W, y_at = n * args.y.pitch + c * g.P * g.Q;
      if (widens) take_numbers(wide.x, args.x[0], x_at, g.H * g.W);
      plane(widens ? wide.x : args.x[0].as<const T>() + x_at, widens ? wide.y : args.y.as<T>() + y_at, i);
      if (widens) put_numbers(args.y, y_at, wide.y, g.P * g.Q);
    }
  });
}

template <class T>
void forward_values(ThreadPool& pool, const Args& args, const Windows& g) {
  const std::size_t bytes = padded_bytes<T>(g);
  forward<T>(pool, args, g, bytes, [&](int part) {
    auto* const padded =
        reinterpret_cast<T*>(static_cast<char*>(args.workspace) + static_cast<std::size_t>(part) * bytes);
    std::fill_n(padded, g.P * g.row_cells(), -std::numeric_limits<T>::infinity());
    return [&g, padded](const T* x, T* y, std::int64_t) { largest_cells(g, x, y, padded); };
  });
}

template <class T, class Winner>
void forward_winners(ThreadPool& pool, const Args& args, const Windows& g) {
  forward<T>(pool, args, g, Rows<T>::bytes(g), [&](int part) {
    return [&g, rows = Rows<T>(args.workspace, part, g), saved = static_cast<Winner*>(args.saved)](
               const T* x, T* y, std::int64_t i) { find_winners(g, x, y, saved + i * g.P * g.Q, rows); };
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
void emit_steps(Lowered& unit, const Spec& spec, const Windows& g, ThreadPool& pool) {
  const auto threads = static_cast<std::size_t>(pool.threads());
  const std::size_t wide = WidePlanes<T>::bytes(g, spec.y.dtype) * threads;
  const auto values = [&](Pass pass) {
    return step(
        {pass}, "direct", [&pool, g](const Args& args) { forward_values<T>(pool, args, g); },
        padded_bytes<T>(g) * threads + wide);
  };
  if (spec.mode == Mode::inference) {
    unit.steps.push_back(values(Pass::forward));
    return;
  }
  unit.saved_bytes = static_cast<std::size_t>(spec.y.shape.count()) * sizeof(Winner);
  unit.steps.push_back(step(
      {Pass::forward}, "direct", [&pool, g](const Args& args) { forward_winners<T, Winner>(pool, args, g); },
      Rows<T>::bytes(g) * threads + wide));
  unit.steps.push_back(values(Pass::recompute));
  unit.steps.push_back(step(
      {Pass::backward_data}, "direct",
      [&pool, g, adds = adds_dx(spec, 0)](const Args& args) { backward<T, Winner>(pool, args, g, adds); },
      static_cast<std::size_t>(g.R * g.S) * sizeof(std::int64_t) + wide));
}

}  // namespace

Lowered lower(const MaxPool& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  unit.recompute_reads_x[0] = true;
  const Windows windows(op, spec.x[0].shape, spec.y.shape);
  with_type(is_half(spec.y.dtype) ? DType::f32 : spec.y.dtype, [&]<class T>() {
    if (windows.R * windows.S <= 255) {
      emit_steps<T, std::uint8_t>(unit, spec, windows, context.pool);
    } else {
      emit_steps<T, std::int32_t>(unit, spec, windows, context.pool);
    }
  });
  return unit;
}

}  // namespace lamina::eigen
