// The mean of each window. Columns are first summed over the window's rows, as vectors, and then along the row. Sums of
// large windows are in double.

#include "lib/backends/eigen/runtime/elements.h"
#include "lib/core/numbers/rounding.h"
#include "window.h"

namespace lamina::eigen {
namespace {

/// The number of cells along one axis that count in the divisor of the window at `first`.
std::int64_t cells_that_count(std::int64_t first, std::int64_t window, std::int64_t extent, std::int64_t pad,
                              bool count_padding) {
  const std::int64_t from = count_padding ? first : std::max<std::int64_t>(0, first);
  const std::int64_t to = std::min(first + window, count_padding ? extent + pad : extent);
  return to - from;
}

/// The rows of one thread: column sums between paddings, and for each window of a row its cells along the row and its
/// sum.
template <class T>
struct Rows {
  T* columns;
  T* cells;
  T* sums;

  static std::size_t bytes(const Windows& g) {
    return static_cast<std::size_t>(round_up(g.row_cells() + 2 * g.Q, 16)) * sizeof(T);
  }

  Rows(void* workspace, int part, const Windows& g, bool count_padding)
      : columns(reinterpret_cast<T*>(static_cast<char*>(workspace) + static_cast<std::size_t>(part) * bytes(g))),
        cells(columns + g.row_cells()),
        sums(cells + g.Q) {
    for (std::int64_t q = 0; q < g.Q; ++q)
      cells[q] = static_cast<T>(cells_that_count(g.first_column(q), g.S, g.W, g.pad_w, count_padding));
  }
};

struct RowRange {
  std::int64_t from, to;
};

RowRange rows_of(const Windows& g, std::int64_t p) {
  return {std::max<std::int64_t>(0, g.first_row(p)), std::min(g.H, g.first_row(p) + g.R)};
}

template <class T, class Sum>
void forward_plane(const Windows& g, bool count_padding, const T* x, T* y, const Rows<Sum>& rows) {
  for (std::int64_t p = 0; p < g.P; ++p) {
    const RowRange range = rows_of(g, p);
    std::fill_n(rows.columns, g.row_cells(), Sum(0));
    Sum* inside = rows.columns + g.pad_w;
    const std::int64_t columns = g.columns_used();
    for (std::int64_t h = range.from; h < range.to; ++h) {
      const T* row = x + h * g.W;
      LAMINA_INDEPENDENT
      for (std::int64_t w = 0; w < columns; ++w) inside[w] += static_cast<Sum>(row[w]);
    }
    Sum* sums = rows.sums;
    std::fill_n(sums, g.Q, Sum(0));
    for (std::int64_t s = 0; s < g.S; ++s) {
      LAMINA_INDEPENDENT
      for (std::int64_t q = 0; q < g.Q; ++q) sums[q] += rows.columns[q * g.stride_w + s];
    }
    const auto row_cells = static_cast<Sum>(cells_that_count(g.first_row(p), g.R, g.H, g.pad_h, count_padding));
    for (std::int64_t q = 0; q < g.Q; ++q) y[p * g.Q + q] = static_cast<T>(sums[q] / (row_cells * rows.cells[q]));
  }
}

template <class T>
void backward_plane(const Windows& g, bool count_padding, const T* dy, T* dx, const Rows<T>& rows) {
  for (std::int64_t p = 0; p < g.P; ++p) {
    std::fill_n(rows.columns, g.row_cells(), T(0));
    const auto row_cells = static_cast<T>(cells_that_count(g.first_row(p), g.R, g.H, g.pad_h, count_padding));
    for (std::int64_t q = 0; q < g.Q; ++q) {
      const T share = dy[p * g.Q + q] / (row_cells * rows.cells[q]);
      for (std::int64_t s = 0; s < g.S; ++s) rows.columns[q * g.stride_w + s] += share;
    }
    const T* inside = rows.columns + g.pad_w;
    const std::int64_t columns = g.columns_used();
    const RowRange range = rows_of(g, p);
    for (std::int64_t h = range.from; h < range.to; ++h) {
      T* row = dx + h * g.W;
      LAMINA_INDEPENDENT
      for (std::int64_t w = 0; w < columns; ++w) row[w] += inside[w];
    }
  }
}

/// Calls work(n, c, rows of this thread) for every plane.
template <class T, class Work>
void split_with_rows(ThreadPool& pool, const Args& args, const Windows& g, bool count_padding, const Shape& shape,
                     Work&& work) {
  const std::int64_t planes = std::int64_t{shape.n} * shape.c;
  pool.run([&](int part) {
    const Rows<T> rows(args.workspace, part, g, count_padding);
    const std::int64_t last = planes * (part + 1) / pool.threads();
    for (std::int64_t i = planes * part / pool.threads(); i < last; ++i) work(i / shape.c, i % shape.c, rows);
  });
}

template <class T, class Sum>
void forward(ThreadPool& pool, const Args& args, const Windows& g, bool count_padding) {
  split_with_rows<Sum>(pool, args, g, count_padding, args.y.shape,
                       [&](std::int64_t n, std::int64_t c, const Rows<Sum>& rows) {
                         forward_plane(g, count_padding, image<const T>(args.x[0], n) + c * g.H * g.W,
                                       image<T>(args.y, n) + c * g.P * g.Q, rows);
                       });
}

template <class T>
void backward(ThreadPool& pool, const Args& args, const Windows& g, bool count_padding, bool adds) {
  if (!wanted(args, 0)) return;
  split_with_rows<T>(pool, args, g, count_padding, args.dy.shape,
                     [&](std::int64_t n, std::int64_t c, const Rows<T>& rows) {
                       T* dx = image<T>(args.dx[0], n) + c * g.H * g.W;
                       if (!adds) std::fill_n(dx, g.H * g.W, T(0));
                       backward_plane(g, count_padding, image<const T>(args.dy, n) + c * g.P * g.Q, dx, rows);
                     });
}

}  // namespace

Lowered lower(const AveragePool& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  unit.recompute_reads_x[0] = true;
  const Windows g(op, spec.x[0].shape, spec.y.shape);
  with_type(spec.y.dtype, [&]<class T>() {
    ThreadPool& pool = context.pool;
    const bool large = g.R * g.S > terms_at_once;
    const auto workspace_of = [&](std::size_t bytes) { return bytes * static_cast<std::size_t>(pool.threads()); };
    add_steps(
        unit, spec,
        [&pool, g, counts = op.count_padding, large](const Args& args) {
          large ? forward<T, double>(pool, args, g, counts) : forward<T, T>(pool, args, g, counts);
        },
        [&pool, g, counts = op.count_padding, adds = adds_dx(spec, 0)](const Args& args) {
          backward<T>(pool, args, g, counts, adds);
        },
        workspace_of(large ? Rows<double>::bytes(g) : Rows<T>::bytes(g)), workspace_of(Rows<T>::bytes(g)));
  });
  return unit;
}

}  // namespace lamina::eigen
