// The mean of each window. The columns of a plane are summed over the rows of each window, and then along the row. Sums
// of large windows are in double.

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

/// One thread's workspace: the number of cells that count in each window along a row, and padded rows.
template <class T>
struct Rows {
  T *cells, *padded;

  static std::size_t bytes(const Windows& g, std::int64_t rows) {
    return static_cast<std::size_t>(round_up(g.Q + rows * g.row_cells() + 1, 16)) * sizeof(T);
  }

  Rows(void* workspace, int part, const Windows& g, std::int64_t rows, bool count_padding)
      : cells(reinterpret_cast<T*>(static_cast<char*>(workspace) + static_cast<std::size_t>(part) * bytes(g, rows))),
        padded(cells + g.Q) {
    std::fill_n(padded, rows * g.row_cells(), T(0));
    for (std::int64_t q = 0; q < g.Q; ++q)
      cells[q] = static_cast<T>(cells_that_count(g.first_column(q), g.S, g.W, g.pad_w, count_padding));
  }
};

template <class T, class Sum>
void forward_plane(const Windows& g, bool count_padding, const T* x, T* y, const Rows<Sum>& rows) {
  reduce_windows(
      g, x, rows.padded, Sum(0), [](auto& sum, auto numbers) { sum += numbers; },
      [&](std::int64_t p, std::int64_t q, auto sum, auto count) {
        using Vector = Lanes<Sum, count>;
        const auto row_cells = static_cast<Sum>(cells_that_count(g.first_row(p), g.R, g.H, g.pad_h, count_padding));
        Vector::store(y + p * g.Q + q, sum / (row_cells * Vector::load(rows.cells + q)));
      });
}

constexpr std::int64_t rows_of_backward = 2;  // the sums of a row of dx, and the shares of a row of dy

template <class T>
void backward_plane(const Windows& g, bool count_padding, const T* dy, T* dx, const Rows<T>& rows) {
  T* const shares = rows.padded + g.row_cells();
  for (std::int64_t p = 0; p < g.P; ++p) {
    std::fill_n(rows.padded, g.row_cells(), T(0));
    const auto row_cells = static_cast<T>(cells_that_count(g.first_row(p), g.R, g.H, g.pad_h, count_padding));
    LAMINA_INDEPENDENT
    for (std::int64_t q = 0; q < g.Q; ++q) shares[q] = dy[p * g.Q + q] / (row_cells * rows.cells[q]);
    with_flag(g.stride_w == 1, [&](auto dense) {
      const std::int64_t stride = decltype(dense)::value ? 1 : g.stride_w;
      for (std::int64_t s = g.S; s-- > 0;) {  // so each cell adds up its windows from the first on
        T* const cells = rows.padded + s;
        LAMINA_INDEPENDENT
        for (std::int64_t q = 0; q < g.Q; ++q) cells[q * stride] += shares[q];
      }
    });
    const T* inside = rows.padded + g.pad_w;
    const std::int64_t columns = g.columns_used();
    const RowRange range = g.rows_inside(p);
    for (std::int64_t h = range.from; h < range.to; ++h) {
      T* row = dx + h * g.W;
      LAMINA_INDEPENDENT
      for (std::int64_t w = 0; w < columns; ++w) row[w] += inside[w];
    }
  }
}

/// Calls work(n, c, rows of this thread) for every plane.
template <class T, class Work>
void split_with_rows(ThreadPool& pool, const Args& args, const Windows& g, std::int64_t padded_rows, bool count_padding,
                     const Shape& shape, Work&& work) {
  pool.split_parts(std::int64_t{shape.n} * shape.c, 1, [&](int part, std::int64_t from, std::int64_t to) {
    const Rows<T> rows(args.workspace, part, g, padded_rows, count_padding);
    for (std::int64_t i = from; i < to; ++i) work(i / shape.c, i % shape.c, rows);
  });
}

template <class T, class Sum>
void forward(ThreadPool& pool, const Args& args, const Windows& g, bool count_padding) {
  split_with_rows<Sum>(pool, args, g, g.P, count_padding, args.y.shape,
                       [&](std::int64_t n, std::int64_t c, const Rows<Sum>& rows) {
                         forward_plane(g, count_padding, image<const T>(args.x[0], n) + c * g.H * g.W,
                                       image<T>(args.y, n) + c * g.P * g.Q, rows);
                       });
}

template <class T>
void backward(ThreadPool& pool, const Args& args, const Windows& g, bool count_padding, bool adds) {
  if (!wanted(args, 0)) return;
  split_with_rows<T>(pool, args, g, rows_of_backward, count_padding, args.dy.shape,
                     [&](std::int64_t n, std::int64_t c, const Rows<T>& rows) {
                       T* dx = image<T>(args.dx[0], n) + c * g.H * g.W;
                       if (!adds) std::fill_n(dx, g.H * g.W, T(0));
                       backward_plane(g, count_padding, image<const T>(args.dy, n) + c * g.P * g.Q, dx, rows);
                     });
}

}  // namespace

Lowered lower(const AveragePool& op, const Spec& spec, const Choice&, const Context& context) {
  const Windows g(op, spec.x[0].shape, spec.y.shape);
  return with_type(spec.y.dtype, [&]<class T>() {
    ThreadPool& pool = context.pool;
    const bool large = g.R * g.S > terms_at_once;
    const auto workspace_of = [&](std::size_t bytes) { return bytes * static_cast<std::size_t>(pool.threads()); };
    return with_steps(
        empty_unit(spec), spec,
        [&pool, g, counts = op.count_padding, large](const Args& args) {
          large ? forward<T, double>(pool, args, g, counts) : forward<T, T>(pool, args, g, counts);
        },
        [&pool, g, counts = op.count_padding, adds = adds_dx(spec, 0)](const Args& args) {
          backward<T>(pool, args, g, counts, adds);
        },
        workspace_of(large ? Rows<double>::bytes(g, g.P) : Rows<T>::bytes(g, g.P)),
        workspace_of(Rows<T>::bytes(g, rows_of_backward)));
  });
}

}  // namespace lamina::eigen
