// Ops that move elements: parts of images (Slice, Concat), borders (Pad), axes in another order (Reorder).

#include <algorithm>
#include <vector>

#include "lib/backends/eigen/half/elements.h"
#include "lib/core/units/reorder.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t grain = 4096;  // elements; less is not worth waking a thread

/// to = from, or to += from, for elements that are `to_step` and `from_step` apart.
template <class T>
void put_apart(T* to, std::int64_t to_step, const T* from, std::int64_t from_step, std::int64_t count, bool adds) {
  if (to_step == 1 && from_step == 1) return put(to, from, count, adds);
  const auto put_each = [&](auto add, auto its_to, auto its_from) {
    LAMINA_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) {
      T& element = to[i * its_to];
      element = add ? element + from[i * its_from] : from[i * its_from];
    }
  };
  using One = std::integral_constant<std::int64_t, 1>;
  using Two = std::integral_constant<std::int64_t, 2>;
  with_flag(adds, [&](auto add) {
    if (to_step == 1 && from_step == 2) return put_each(add, One{}, Two{});
    if (to_step == 2 && from_step == 1) return put_each(add, Two{}, One{});
    put_each(add, to_step, from_step);
  });
}

/// Splits `count` elements of an image, from `first` on, at the ends of rows, and calls work(outer, middle, column,
/// count) for each part. `outer` and `middle` are the places of the part's row along these axes.
template <class Work>
void for_each_piece(std::int64_t middles, std::int64_t columns, std::int64_t first, std::int64_t count, Work&& work) {
  const std::int64_t row = first / columns;
  for (std::int64_t o = row / middles, m = row % middles, column = first % columns; count > 0; ++m, column = 0) {
    if (m == middles) m = 0, ++o;
    const std::int64_t some = std::min(columns - column, count);
    work(o, m, column, some);
    count -= some;
  }
}

/// Whether the memory of `part` is the box of `whole`.
template <class T>
bool is_there(const Tensor& part, const Box& box, const Tensor& whole) {
  return image<T>(whole, 0) + box.offset() == part.as<T>() && whole.pitch == part.pitch;
}

/// part = the box of whole, or +=.
template <class T>
void gather_from(ThreadPool& pool, const Tensor& whole, const Box& box, const Tensor& part, bool adds) {
  if (box.is_run() && is_there<T>(part, box, whole) && !adds) return;
  const auto& [outer, middle, inner] = box.axes;
  split_images(pool, part.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    const T* const x = image<const T>(whole, n) + box.offset();
    Output<T> y(part, adds, {});
    write_chunks(y, n * part.pitch + first, last - first, adds, [&](T* to, std::int64_t i, std::int64_t some) {
      for_each_piece(middle.part, inner.part, first + i, some,
                     [&](std::int64_t o, std::int64_t m, std::int64_t column, std::int64_t count) {
                       const T* const from = x + o * box.apart(0) + m * box.apart(1) + column * inner.step;
                       put_apart(to, 1, from, inner.step, count, adds);
                       to += count;
                     });
    });
  });
}

/// The box of whole = part, or +=.
template <class T>
void scatter_to(ThreadPool& pool, const Tensor& part, const Box& box, const Tensor& whole, bool adds) {
  if (box.is_run() && is_there<T>(part, box, whole) && !adds) return;
  const auto& [outer, middle, inner] = box.axes;
  split_images(pool, part.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    const T* x = image<const T>(part, n) + first;
    Output<T> y(whole, adds, {}, inner.part);
    for_each_piece(middle.part, inner.part, first, last - first,
                   [&](std::int64_t o, std::int64_t m, std::int64_t column, std::int64_t count) {
                     const std::int64_t at =
                         n * whole.pitch + box.offset() + o * box.apart(0) + m * box.apart(1) + column * inner.step;
                     if (inner.step == 1)
                       write_each(y, at, count, adds, [x](std::int64_t k) { return x[k]; });
                     else
                       put_apart(whole.as<T>() + at, inner.step, x, 1, count, adds);
                     x += count;
                   });
  });
}

/// Along an axis, the element of the part that lies at an element of the whole; -1: none.
std::int64_t element_at(const Box::Along& its, std::int64_t element) {
  const std::int64_t at = element - its.first, i = its.step == 1 ? at : at / its.step;
  return at >= 0 && i < its.part && i * its.step == at ? i : -1;
}

/// Writes elements of a row of the whole, from `first` on: the elements of `x`, the part's row, else `value`.
template <class T>
void scatter_in_row(T* y, const T* x, const Box::Along& its, std::int64_t first, std::int64_t count, T value) {
  const auto reached = [&](std::int64_t w) {  // elements of the part's row that lie before w
    const std::int64_t at = w - its.first;
    return std::clamp<std::int64_t>(its.step == 1 ? at : divide_up(at, its.step), 0, its.part);
  };
  const std::int64_t i = reached(first), some = reached(first + count) - i;
  T* const begin = y + (some == 0 ? count : its.first + i * its.step - first);
  std::fill(y, its.step > 1 ? y + count : begin, value);
  if (its.step == 1) std::fill(begin + some, y + count, value);
  if (some > 0 && begin != x + i) put_apart(begin, its.step, x + i, 1, some, false);
}

/// whole = part in the box, and `value` elsewhere.
template <class T>
void scatter_in(ThreadPool& pool, const Tensor& part, const Box& box, const Tensor& whole, T value) {
  const auto& [outer, middle, inner] = box.axes;
  split_images(pool, whole.shape, [&](std::int64_t n, std::int64_t first, std::int64_t last) {
    Output<T> y(whole, is_there<T>(part, box, whole), {});
    write_chunks(y, n * whole.pitch + first, last - first, false, [&](T* to, std::int64_t i, std::int64_t some) {
      for_each_piece(middle.whole, inner.whole, first + i, some,
                     [&](std::int64_t outer_at, std::int64_t middle_at, std::int64_t column, std::int64_t count) {
                       const std::int64_t o = element_at(outer, outer_at), m = element_at(middle, middle_at);
                       if (o < 0 || m < 0)
                         std::fill_n(to, count, value);
                       else
                         scatter_in_row(to, image<const T>(part, n) + (o * middle.part + m) * inner.part, inner, column,
                                        count, value);
                       to += count;
                     });
    });
  });
}

/// The cell that a padded axis shows at `position`, counted from the first cell of the axis without its border.
std::int64_t shown(PadBy by, std::int64_t position, std::int64_t extent) {
  if (position >= 0 && position < extent) return position;
  if (by == PadBy::edge) return position < 0 ? 0 : extent - 1;
  if (by == PadBy::reflect) return position < 0 ? -position : 2 * (extent - 1) - position;
  return position < 0 ? position + extent : position - extent;
}

/// Calls work(row of y, row of x) for each row of a plane of y and the row that it shows.
template <class Work>
void for_each_row(const Pad& op, const Shape& x, const Shape& y, Work&& work) {
  for (int p = 0; p < y.h; ++p) work(p, shown(op.by, p - op.before.h, x.h));
}

/// Calls work(column of y, column of x) for the columns of a border.
template <class Work>
void for_each_border_column(const Pad& op, const Shape& x, const Shape& y, Work&& work) {
  const auto visit = [&](int q) { work(q, shown(op.by, q - op.before.w, x.w)); };
  for (int q = 0; q < op.before.w; ++q) visit(q);
  for (int q = op.before.w + x.w; q < y.w; ++q) visit(q);
}

/// Pads with a border of cells.
template <class T>
void pad_by_cells(ThreadPool& pool, const Args& args, const Pad& op) {
  const Shape &x = args.x[0].shape, &y = args.y.shape;
  split_planes(pool, y, [&](std::int64_t n, std::int64_t c) {
    const T* const from = image<const T>(args.x[0], n) + c * x.plane();
    T* const to = image<T>(args.y, n) + c * y.plane();
    for_each_row(op, x, y, [&](std::int64_t p, std::int64_t h) {
      const T* const its = from + h * x.w;
      T* const row = to + p * y.w;
      for_each_border_column(op, x, y, [&](std::int64_t q, std::int64_t w) { row[q] = its[w]; });
      put(row + op.before.w, its, x.w, false);
    });
  });
}

template <class T>
void unpad_by_cells(ThreadPool& pool, const Args& args, const Pad& op, bool adds) {
  const Shape &x = args.dx[0].shape, &y = args.dy.shape;
  split_planes(pool, x, [&](std::int64_t n, std::int64_t c) {
    T* const to = image<T>(args.dx[0], n) + c * x.plane();
    const T* const from = image<const T>(args.dy, n) + c * y.plane();
    for (std::int64_t h = 0; h < x.h; ++h) put(to + h * x.w, from + (op.before.h + h) * y.w + op.before.w, x.w, adds);
    for_each_row(op, x, y, [&](std::int64_t p, std::int64_t h) {
      const T* const its = from + p * y.w;
      T* const row = to + h * x.w;
      for_each_border_column(op, x, y, [&](std::int64_t q, std::int64_t w) { row[w] += its[q]; });
      if (p < op.before.h || p >= op.before.h + x.h) put(row, its + op.before.w, x.w, true);
    });
  });
}

/// Interleaves K rows of x: y[i K + k] = x[i + k apart], or +=.
template <class T, int K, bool Adds>
void interleave(T* y, const T* x, std::int64_t apart, std::int64_t count) {
  LAMINA_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i)
    for (int k = 0; k < K; ++k) y[i * K + k] = Adds ? y[i * K + k] + x[i + k * apart] : x[i + k * apart];
}

/// The inverse: y[i + k apart] = x[i K + k], or +=.
template <class T, int K, bool Adds>
void deinterleave(T* y, std::int64_t apart, const T* x, std::int64_t count) {
  LAMINA_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i)
    for (int k = 0; k < K; ++k) y[i + k * apart] = Adds ? y[i + k * apart] + x[i * K + k] : x[i * K + k];
}

/// Transposes tiles into a room, and copies their rows from there by non-temporal stores.
template <class T>
void transpose_by_tiles(const MicroKernels<T>& kernels, Output<T>& output, std::int64_t at, std::int64_t y_apart,
                        const T* x, std::int64_t x_apart, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t deep = 64, wide = 128;
  const bool adjacent = y_apart == columns && columns <= wide;  // rows of y follow one another
  const std::int64_t apart = adjacent ? columns : wide;
  T room[deep * wide];
  for (std::int64_t row = 0; row < rows; row += deep)
    for (std::int64_t k = 0; k < columns; k += wide) {
      const std::int64_t its_rows = std::min(deep, rows - row), its_columns = std::min(wide, columns - k);
      kernels.transpose(room, apart, x + row + k * x_apart, x_apart, nullptr, 0, its_columns, its_rows);
      const std::int64_t runs = adjacent ? 1 : its_rows, run = adjacent ? its_rows * columns : its_columns;
      for (std::int64_t i = 0; i < runs; ++i) {
        output.begin(at + (row + i) * y_apart + k, run, false);
        output.finish(room + i * apart);
      }
    }
}

/// y[row y_apart + k] = x[row + k x_apart], or +=, for `rows` rows and k below `columns`. `at`: first element of y.
template <class T>
void transpose(const MicroKernels<T>& kernels, Output<T>& output, T* y, std::int64_t at, std::int64_t y_apart,
               const T* x, std::int64_t x_apart, std::int64_t rows, std::int64_t columns, bool adds) {
  y += at;
  with_flag(adds, [&](auto add) {
    const auto interleaved = [&](auto by) {
      write_chunks(output, at, rows * by, adds, [&](T* to, std::int64_t i, std::int64_t some) {
        interleave<T, by, add>(to, x + i / by, x_apart, some / by);
      });
    };
    if (columns == 2 && y_apart == 2) return interleaved(std::integral_constant<int, 2>());
    if (columns == 4 && y_apart == 4) return interleaved(std::integral_constant<int, 4>());
    if (rows == 2 && x_apart == 2) return deinterleave<T, 2, add>(y, y_apart, x, columns);
    if (rows == 4 && x_apart == 4) return deinterleave<T, 4, add>(y, y_apart, x, columns);
    if (!add && output.in_place()) return kernels.transpose(y, y_apart, x, x_apart, nullptr, 0, columns, rows);
    if (!add) return transpose_by_tiles(kernels, output, at, y_apart, x, x_apart, rows, columns);
    constexpr std::int64_t side = 16;
    for (std::int64_t c = 0; c < columns; c += side)
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t k = c; k < std::min(columns, c + side); ++k) y[row * y_apart + k] += x[row + k * x_apart];
  });
}

/// Copies images by `axes`. Where the innermost axes of source and target differ, tiles of both are transposed, so that
/// each line of memory is used while it is in cache.
template <class T>
void reorder(const Context& context, const Tensor& from, const Tensor& to, const std::vector<CopyAxis>& axes,
             bool adds) {
  const CopyAxis across = axes.back();  // innermost in the target
  const CopyAxis along = *std::ranges::find(axes, 1, &CopyAxis::from);
  const bool runs = along.to == 1;
  const std::int64_t side = std::max<std::int64_t>(64, grain / across.extent);
  const std::int64_t tiles = runs ? 1 : divide_up(along.extent, side);
  const std::int64_t run = runs || along.to > across.extent ? across.extent : elements_of_room;
  const std::int64_t size = runs ? across.extent : across.extent * std::min(side, along.extent);
  const std::int64_t places = to.shape.image() / across.extent / (runs ? 1 : along.extent);
  const auto& kernels = context.set.of<T>().kernels;
  context.pool.split(to.shape.n * places * tiles, std::max<std::int64_t>(1, grain / size),
                     [&](std::int64_t i, std::int64_t end) {
                       Output<T> output(to, adds, {}, run);
                       for (; i < end; ++i) {
                         const std::int64_t first = i % tiles * side, n = i / tiles / places;
                         std::int64_t place = i / tiles % places, source = first, target = first * along.to;
                         for (auto axis = axes.rbegin() + 1; axis != axes.rend(); ++axis) {
                           if (!runs && axis->from == 1) continue;  // `along`
                           source += place % axis->extent * axis->from;
                           target += place % axis->extent * axis->to;
                           place /= axis->extent;
                         }
                         const T* const x = image<const T>(from, n) + source;
                         const std::int64_t at = n * to.pitch + target;
                         if (runs)
                           write_each(output, at, across.extent, adds, [x](std::int64_t k) { return x[k]; });
                         else
                           transpose(kernels, output, to.as<T>(), at, along.to, x, across.from,
                                     std::min(side, along.extent - first), across.extent, adds);
                       }
                     });
}

}  // namespace

Lowered lower(const Pad& op, const Spec& spec, const Choice&, const Context& context) {
  const Box box = box_of(op, spec.x[0].shape, spec.y.shape);
  return with_type(spec.y.dtype, [&]<class T>() {
    return with_steps(
        empty_unit(spec), spec,
        [&pool = context.pool, op, box](const Args& args) {
          op.by == PadBy::value ? scatter_in(pool, args.x[0], box, args.y, static_cast<T>(op.value))
                                : pad_by_cells<T>(pool, args, op);
        },
        [&pool = context.pool, op, box, adds = adds_dx(spec, 0)](const Args& args) {
          if (!wanted(args, 0)) return;
          op.by == PadBy::value ? gather_from<T>(pool, args.dy, box, args.dx[0], adds)
                                : unpad_by_cells<T>(pool, args, op, adds);
        });
  });
}

Lowered lower(const Slice& op, const Spec& spec, const Choice&, const Context& context) {
  return with_type(spec.y.dtype, [&]<class T>() {
    return with_steps(
        empty_unit(spec), spec,
        [&pool = context.pool, box = box_of(op, spec.x[0].shape)](const Args& args) {
          gather_from<T>(pool, args.x[0], box, args.y, false);
        },
        [&pool = context.pool, box = box_of(op, spec.x[0].shape), adds = adds_dx(spec, 0)](const Args& args) {
          if (!wanted(args, 0)) return;
          adds ? scatter_to<T>(pool, args.dy, box, args.dx[0], true) : scatter_in<T>(pool, args.dy, box, args.dx[0], 0);
        });
  });
}

Lowered lower(const Concat& op, const Spec& spec, const Choice&, const Context& context) {
  const std::vector<Box> boxes = boxes_of(op, spec);
  return with_type(spec.y.dtype, [&]<class T>() {
    return with_steps(
        empty_unit(spec), spec,
        [&pool = context.pool, boxes](const Args& args) {
          for (std::size_t i = 0; i < boxes.size(); ++i) scatter_to<T>(pool, args.x[i], boxes[i], args.y, false);
        },
        [&pool = context.pool, boxes, spec](const Args& args) {
          for (std::size_t i = 0; i < boxes.size(); ++i)
            if (wanted(args, i)) gather_from<T>(pool, args.dy, boxes[i], args.dx[i], adds_dx(spec, i));
        });
  });
}

Lowered lower(const Reorder& op, const Spec& spec, const Choice&, const Context& context) {
  const std::vector<CopyAxis> axes = copy_axes(op);
  return with_type(spec.y.dtype, [&]<class T>() {
    return with_steps(
        reorder_unit(spec, axes), spec,
        [&context, axes](const Args& args) {
          if (!same_place(args.x[0], args.y)) reorder<T>(context, args.x[0], args.y, axes, false);
        },
        [&context, back = inverse(axes), adds = adds_dx(spec, 0)](const Args& args) {
          if (wanted(args, 0) && !same_place(args.dx[0], args.dy)) reorder<T>(context, args.dy, args.dx[0], back, adds);
        });
  });
}

}  // namespace lamina::eigen
