#pragma once
// The windows of a pooling op on a plane, and vectors of numbers.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "lamina/op.h"
#include "lamina/shape.h"
#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {

/// Rows [from, to) of a plane.
struct RowRange {
  std::int64_t from, to;
};

/// Extents as the page on notation names them: input H x W, output P x Q, window R x S.
struct Windows {
  std::int64_t H, W, P, Q, R, S;
  std::int64_t stride_h, stride_w, pad_h, pad_w;

  template <class Pooling>
  Windows(const Pooling& op, const Shape& x, const Shape& y)
      : H(x.h),
        W(x.w),
        P(y.h),
        Q(y.w),
        R(op.window.h),
        S(op.window.w),
        stride_h(y.h > 1 ? op.stride.h : 1),  // the stride of one window has no effect, and 1 needs the least room
        stride_w(y.w > 1 ? op.stride.w : 1),
        pad_h(op.pad.h),
        pad_w(op.pad.w) {}

  std::int64_t first_row(std::int64_t p) const { return p * stride_h - pad_h; }  ///< negative in the padding
  std::int64_t first_column(std::int64_t q) const { return q * stride_w - pad_w; }
  RowRange rows_inside(std::int64_t p) const {
    return {std::max<std::int64_t>(0, first_row(p)), std::min(H, first_row(p) + R)};
  }

  /// A padded row holds every cell that any window touches; column w of the plane is cell w + pad_w. Columns beyond the
  /// last window are left out.
  std::int64_t row_cells() const { return (Q - 1) * stride_w + S; }
  std::int64_t columns_used() const { return std::min(W, row_cells() - pad_w); }
};

/// Vectors of numbers, made by hand: the compiler does not vectorise a loop over few numbers.
template <class T, int Count>
struct Lanes {
  // NOLINTNEXTLINE(modernize-use-using): g++ drops the attributes of a dependent type in an alias declaration
  typedef T Values __attribute__((vector_size(Count * sizeof(T))));

  template <class From>
  static Values load(const From* from) {
    typedef From Loaded __attribute__((vector_size(Count * sizeof(From))));  // NOLINT(modernize-use-using)
    Loaded loaded;
    std::memcpy(&loaded, from, sizeof loaded);
    return __builtin_convertvector(loaded, Values);
  }
  /// Every stride-th number. With a stride of 2 the number after the last is read, too.
  static Values load_strided(const T* from, std::int64_t stride) {
    if (stride == 1) return load(from);
    const auto every_second = [&]<int... I>(std::integer_sequence<int, I...>) {
      return __builtin_shufflevector(load(from), load(from + Count), (2 * I)...);
    };
    if (stride == 2) return every_second(std::make_integer_sequence<int, Count>());
    Values loaded;
    for (int i = 0; i < Count; ++i) loaded[i] = from[i * stride];
    return loaded;
  }
  template <class To>
  static void store(To* to, Values values) {
    for (int i = 0; i < Count; ++i) to[i] = static_cast<To>(values[i]);
  }
};
template <class T>
struct Lanes<T, 1> {
  using Values = T;

  template <class From>
  static T load(const From* from) {
    return static_cast<T>(*from);
  }
  static T load_strided(const T* from, std::int64_t) { return *from; }
  template <class To>
  static void store(To* to, T value) {
    *to = static_cast<To>(value);
  }
};

/// Calls work(first, number) for all of [0, count): eight at a time or, if there are fewer, four or one. The last call
/// begins earlier where it would reach beyond `count`.
template <int Most = 8, class Work>
void in_lanes(std::int64_t count, Work&& work) {
  constexpr int fewer = Most == 8 ? 4 : 1;
  if constexpr (Most > 1)
    if (count < Most) return in_lanes<fewer>(count, work);
  for (std::int64_t i = 0; i < count; i += Most) work(std::min(i, count - Most), std::integral_constant<int, Most>());
}

/// Calls down(p, rows, w, number) for runs of columns of each row p of windows, then along(p, q, stride, number) for
/// runs of windows.
template <class T, class Down, class Along>
void for_windows(const Windows& g, const T* x, Down&& down, Along&& along) {
  for (std::int64_t p = 0; p < g.P; ++p) {
    const RowRange rows = g.rows_inside(p);
    prefetch_ahead(x + rows.from * g.W, g.stride_h * g.W);
    in_lanes(g.columns_used(), [&](std::int64_t w, auto count) { down(p, rows, w, count); });
  }
  with_flag(g.stride_w == 1, [&](auto dense) {
    const std::int64_t stride = dense ? 1 : g.stride_w;
    for (std::int64_t p = 0; p < g.P; ++p)
      in_lanes(g.Q, [&](std::int64_t q, auto count) { along(p, q, stride, count); });
  });
}

/// Reduces each window: add(sum, numbers) takes the cells of each column, from `identity` on, and then the columns.
/// store(p, q, reduced, number) takes the results. `padded` has a row of g.row_cells() for each row of windows, and
/// one element more; its paddings are `identity`.
template <class T, class From, class Add, class Store>
void reduce_windows(const Windows& g, const From* x, T* padded, T identity, Add&& add, Store&& store) {
  const std::int64_t pitch = g.row_cells();
  for_windows(
      g, x,
      [&](std::int64_t p, const RowRange& rows, std::int64_t w, auto count) {
        using Vector = Lanes<T, count>;
        typename Vector::Values all = typename Vector::Values{} + identity;
        for (std::int64_t h = rows.from; h < rows.to; ++h) add(all, Vector::load(x + h * g.W + w));
        Vector::store(padded + p * pitch + g.pad_w + w, all);
      },
      [&](std::int64_t p, std::int64_t q, std::int64_t stride, auto count) {
        using Vector = Lanes<T, count>;
        typename Vector::Values all = typename Vector::Values{} + identity;
        for (std::int64_t s = 0; s < g.S; ++s)
          add(all, Vector::load_strided(padded + p * pitch + q * stride + s, stride));
        store(p, q, all, count);
      });
}

}  // namespace lamina::eigen
