// The largest cell of each window. Each input row is reduced along its columns once and kept for all windows that hold
// it; windows then reduce those along the rows. In training the first maximum's place in its window is saved.

#include <limits>
#include <utility>

#include "elements.h"
#include "window.h"

namespace lamina::eigen {
namespace {

/// An integer as wide as T, so that a comparison of Ts selects among them without widening.
template <class T>
using Lane = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// Whether `value` takes the place of `best`: larger, or the first NaN.
template <class T>
bool takes(T value, T best) {
  return (value > best) | ((value != value) & (best == best));
}

/// One thread's rows, in the workspace.
template <class T>
struct Rows {
  T* padded;       // one input row between its paddings
  T* phases;       // the same, phase by phase; `padded` itself where the stride is 1
  T* best;         // R rows: the largest cell per window of input row h at h % R
  Lane<T>* place;  // R rows: its column in the window
  T* window_best;  // of the output row in the making
  Lane<T>* window_place;
  Lane<T>* first_place;  // the first column of each window that is not padding

  static std::int64_t aligned(std::int64_t count) { return (count + 15) / 16 * 16; }

  static std::size_t bytes(const Windows& g) {
    const std::int64_t phases = aligned(g.phase_cells()) * g.stride_w;
    const std::int64_t padded = aligned(std::max(g.row_cells(), g.phase_cells() * g.stride_w));
    return static_cast<std::size_t>(padded + phases + (2 * g.R + 3) * aligned(g.Q)) * sizeof(T);
  }

  Rows(void* workspace, int part, const Windows& g) {
    auto* at = reinterpret_cast<T*>(static_cast<char*>(workspace) + static_cast<std::size_t>(part) * bytes(g));
    const auto take = [&at](std::int64_t count) { return std::exchange(at, at + count); };
    const auto take_lanes = [&](std::int64_t count) { return reinterpret_cast<Lane<T>*>(take(count)); };
    const std::int64_t q = aligned(g.Q);
    padded = take(aligned(std::max(g.row_cells(), g.phase_cells() * g.stride_w)));
    phases = take(aligned(g.phase_cells()) * g.stride_w);
    best = take(g.R * q);
    place = take_lanes(g.R * q);
    window_best = take(q);
    window_place = take_lanes(q);
    first_place = take_lanes(q);
    if (g.stride_w == 1) phases = padded;
    std::fill(padded, best, -std::numeric_limits<T>::infinity());
    for (std::int64_t i = 0; i < g.Q; ++i)
      first_place[i] = static_cast<Lane<T>>(std::max<std::int64_t>(0, -g.first_column(i)));
  }
};

template <class T>
void cut_phases(const Windows& g, const T* x, const Rows<T>& rows) {
  std::copy_n(x, g.columns_used(), rows.padded + g.pad_w);
  const std::int64_t cells = g.phase_cells(), pitch = Rows<T>::aligned(cells);
  if (g.stride_w == 2) {
    T *even = rows.phases, *odd = rows.phases + pitch;
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < cells; ++i) {
      even[i] = rows.padded[2 * i];
      odd[i] = rows.padded[2 * i + 1];
    }
  } else if (g.stride_w > 2) {
    for (std::int64_t j = 0; j < g.stride_w; ++j)
      for (std::int64_t i = 0; i < cells; ++i) rows.phases[j * pitch + i] = rows.padded[i * g.stride_w + j];
  }
}

/// The largest cell of every window of one input row, and its column.
template <class T, bool Places>
void reduce_row(const Windows& g, const T* x, std::int64_t h, const Rows<T>& rows) {
  cut_phases(g, x + h * g.W, rows);
  const std::int64_t pitch = Rows<T>::aligned(g.phase_cells()), slot = h % g.R * Rows<T>::aligned(g.Q);
  T* best = rows.best + slot;
  Lane<T>* place = rows.place + slot;
  std::fill_n(best, g.Q, -std::numeric_limits<T>::infinity());
  if (Places) std::copy_n(rows.first_place, g.Q, place);
  for (std::int64_t s = 0; s < g.S; ++s) {
    const T* cells = rows.phases + s % g.stride_w * pitch + s / g.stride_w;
    LAMINA_INDEPENDENT
    for (std::int64_t q = 0; q < g.Q; ++q) {
      const bool larger = takes(cells[q], best[q]);
      best[q] = larger ? cells[q] : best[q];
      if (Places) place[q] = larger ? static_cast<Lane<T>>(s) : place[q];
    }
  }
}

template <class T, class Winner, bool Places>
void forward_plane(const Windows& g, const T* x, T* y, Winner* winners, const Rows<T>& rows) {
  std::int64_t reduced = 0;  // input rows so far
  for (std::int64_t p = 0; p < g.P; ++p) {
    const std::int64_t first = g.first_row(p);
    const std::int64_t from = std::max<std::int64_t>(0, first), to = std::min(g.H, first + g.R);
    for (reduced = std::max(reduced, from); reduced < to; ++reduced) reduce_row<T, Places>(g, x, reduced, rows);

    T* best = rows.window_best;
    Lane<T>* place = rows.window_place;
    for (std::int64_t h = from; h < to; ++h) {
      const std::int64_t slot = h % g.R * Rows<T>::aligned(g.Q);
      const T* row = rows.best + slot;
      const Lane<T>* column = rows.place + slot;
      const auto before = static_cast<Lane<T>>((h - first) * g.S);
      LAMINA_INDEPENDENT
      for (std::int64_t q = 0; q < g.Q; ++q) {
        const bool larger = h == from || takes(row[q], best[q]);
        best[q] = larger ? row[q] : best[q];
        if (Places) place[q] = larger ? before + column[q] : place[q];
      }
    }
    std::copy_n(best, g.Q, y + p * g.Q);
    if (Places)
      for (std::int64_t q = 0; q < g.Q; ++q) winners[p * g.Q + q] = static_cast<Winner>(place[q]);
  }
}

/// Adds each output's gradient to its winner. Windows may overlap, so this goes one by one, but within one plane.
template <class T, class Winner>
void backward_plane(const Windows& g, const T* dy, const Winner* winners, T* dx) {
  for (std::int64_t p = 0; p < g.P; ++p) {
    for (std::int64_t q = 0; q < g.Q; ++q) {
      const std::int64_t winner = winners[p * g.Q + q];
      const std::int64_t h = g.first_row(p) + winner / g.S, w = g.first_column(q) + winner % g.S;
      dx[h * g.W + w] += dy[p * g.Q + q];
    }
  }
}

template <class T, class Winner, bool Places>
void forward(Pool& pool, const Args& args, const Windows& g) {
  const Shape& shape = args.y.shape;
  const std::int64_t planes = std::int64_t{shape.n} * shape.c;
  pool.run([&](int part) {
    const Rows<T> rows(args.workspace, part, g);
    const std::int64_t last = planes * (part + 1) / pool.threads();
    for (std::int64_t i = planes * part / pool.threads(); i < last; ++i) {
      const std::int64_t n = i / shape.c, c = i % shape.c;
      Winner* winners = Places ? static_cast<Winner*>(args.saved) + i * g.P * g.Q : nullptr;
      forward_plane<T, Winner, Places>(g, image<const T>(args.x[0], n) + c * g.H * g.W,
                                       image<T>(args.y, n) + c * g.P * g.Q, winners, rows);
    }
  });
}

template <class T, class Winner>
void backward(Pool& pool, const Args& args, const Windows& g, bool adds) {
  if (!wanted(args, 0)) return;
  const Shape& shape = args.dy.shape;
  split_planes(pool, shape, [&](std::int64_t n, std::int64_t c) {
    T* dx = image<T>(args.dx[0], n) + c * g.H * g.W;
    if (!adds) std::fill_n(dx, g.H * g.W, T(0));
    backward_plane(g, image<const T>(args.dy, n) + c * g.P * g.Q,
                   static_cast<const Winner*>(args.saved) + (n * shape.c + c) * g.P * g.Q, dx);
  });
}

template <class T, class Winner>
void emit_steps(Lowered& unit, const Spec& spec, const Windows& g, Pool& pool) {
  const std::size_t workspace = Rows<T>::bytes(g) * static_cast<std::size_t>(pool.threads());
  const auto without_places = [&pool, g](const Args& args) { forward<T, Winner, false>(pool, args, g); };
  if (spec.mode == Mode::inference) {
    unit.steps.push_back(step({Pass::forward}, "direct", without_places, workspace));
    return;
  }
  unit.saved_bytes = static_cast<std::size_t>(spec.y.shape.count()) * sizeof(Winner);
  unit.steps.push_back(step(
      {Pass::forward}, "direct", [&pool, g](const Args& args) { forward<T, Winner, true>(pool, args, g); }, workspace));
  unit.steps.push_back(step({Pass::recompute}, "direct", without_places, workspace));
  unit.steps.push_back(step({Pass::backward_data}, "direct", [&pool, g, adds = adds_dx(spec, 0)](const Args& args) {
    backward<T, Winner>(pool, args, g, adds);
  }));
}

}  // namespace

Lowered lower(const MaxPool& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  unit.recompute_reads_x[0] = true;
  const Windows windows(op, spec.x[0].shape, spec.y.shape);
  with_type(spec.y.dtype, [&]<class T>() {
    if (windows.R * windows.S <= 255) {
      emit_steps<T, std::uint8_t>(unit, spec, windows, context.pool);
    } else {
      emit_steps<T, std::int32_t>(unit, spec, windows, context.pool);
    }
  });
  return unit;
}

}  // namespace lamina::eigen
