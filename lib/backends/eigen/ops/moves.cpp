// Ops that move elements: parts of images (Slice, Concat), a border of a constant or of cells, axes in another order.

#include <algorithm>
#include <vector>

#include "lib/backends/eigen/runtime/elements.h"
#include "lib/core/units/reorder.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t grain = 4096;  // elements; less is not worth waking a thread

/// to = from, or to += from, of elements that are `to_step` and `from_step` apart.
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

/// Calls work(image, element of the part, element of the whole, elements) for the runs of elements of the part in each
/// image, `box.axes[2].step` apart in the whole.
template <class Work>
void for_each_run(ThreadPool& pool, const Box& box, std::int64_t images, Work&& work) {
  const auto& [outer, middle, inner] = box.axes;
  const std::int64_t rows = outer.part * middle.part, size = rows * inner.part;
  pool.split(images * size, grain, [&](std::int64_t from, std::int64_t to) {
    while (from < to) {
      const std::int64_t n = from / size, part = from % size, row = part / inner.part, i = part % inner.part;
      const std::int64_t whole = box.offset() + row / middle.part * box.apart(0) + row % middle.part * box.apart(1);
      const std::int64_t count = std::min(inner.part - i, to - from);
      work(n, part, whole + i * inner.step, count);
      from += count;
    }
  });
}

/// part = the box of whole or, with `scatters`, the box of whole = part. With `adds`, += in place of =.
template <class T>
void copy_box(ThreadPool& pool, const Tensor& whole, const Box& box, const Tensor& part, bool scatters, bool adds) {
  const bool is_there = image<T>(whole, 0) + box.offset() == part.as<T>() && whole.pitch == part.pitch;
  if (box.is_run() && is_there && !adds) return;
  const std::int64_t step = box.axes[2].step;
  for_each_run(pool, box, part.shape.n, [&](std::int64_t n, std::int64_t i, std::int64_t at, std::int64_t count) {
    T *const of_part = image<T>(part, n) + i, *const of_whole = image<T>(whole, n) + at;
    scatters ? put_apart(of_whole, step, of_part, 1, count, adds) : put_apart(of_part, 1, of_whole, step, count, adds);
  });
}

/// Whether an axis of the part has this element of the whole.
bool holds(const Box::Along& its, std::int64_t element) {
  const std::int64_t at = element - its.first;
  return at >= 0 && at < its.part * its.step && at % its.step == 0;
}

/// whole = part in the box, and `value` elsewhere.
template <class T>
void scatter_in(ThreadPool& pool, const Tensor& part, const Box& box, const Tensor& whole, T value) {
  const auto& [outer, middle, inner] = box.axes;
  const std::int64_t size = whole.shape.image();
  pool.split(whole.shape.n * size, grain, [&](std::int64_t from, std::int64_t to) {
    while (from < to) {  // runs within a row of the whole
      const std::int64_t n = from / size, row = from % size / inner.whole, first = from % inner.whole;
      const std::int64_t last = std::min(inner.whole, first + to - from);
      from += last - first;
      T* const y = image<T>(whole, n) + row * inner.whole;
      const std::int64_t o = row / middle.whole, m = row % middle.whole;
      if (!holds(outer, o) || !holds(middle, m)) {
        std::fill(y + first, y + last, value);
        continue;
      }
      const std::int64_t place = (o - outer.first) / outer.step * middle.part + (m - middle.first) / middle.step;
      const T* const x = image<const T>(part, n) + place * inner.part;
      const auto reached = [&](std::int64_t w) {  // elements of the part's row that lie before w
        return std::clamp<std::int64_t>(divide_up(w - inner.first, inner.step), 0, inner.part);
      };
      const std::int64_t i = reached(first), count = reached(last) - i, begin = inner.first + i * inner.step;
      if (inner.step > 1 || count == 0) {
        std::fill(y + first, y + last, value);
      } else {
        std::fill(y + first, y + begin, value);
        std::fill(y + begin + count, y + last, value);
      }
      if (y + begin != x + i || inner.step > 1) put_apart(y + begin, inner.step, x + i, 1, count, false);
    }
  });
}

/// The cell that a border repeats, `position` cells from the first cell of an axis.
std::int64_t shown(PadBy by, std::int64_t position, std::int64_t extent) {
  if (position >= 0 && position < extent) return position;
  if (by == PadBy::edge) return position < 0 ? 0 : extent - 1;
  if (by == PadBy::reflect) return position < 0 ? -position : 2 * (extent - 1) - position;
  return position < 0 ? position + extent : position - extent;
}

/// Calls work(row of y, row of x) for the rows of a plane of y and those that they show.
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

/// y[i] of K adjacent elements each: y[i K + k] = x[i + k apart], or +=.
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

/// y[row y_apart + k] = x[row + k x_apart], or +=, for `rows` and for `columns` of k.
template <class T>
void transpose(const MicroKernels<T>& kernels, T* y, std::int64_t y_apart, const T* x, std::int64_t x_apart,
               std::int64_t rows, std::int64_t columns, bool adds) {
  with_flag(adds, [&](auto add) {
    if (columns == 2 && y_apart == 2) return interleave<T, 2, add>(y, x, x_apart, rows);
    if (columns == 4 && y_apart == 4) return interleave<T, 4, add>(y, x, x_apart, rows);
    if (rows == 2 && x_apart == 2) return deinterleave<T, 2, add>(y, y_apart, x, columns);
    if (rows == 4 && x_apart == 4) return deinterleave<T, 4, add>(y, y_apart, x, columns);
    if (!add) return kernels.transpose(y, y_apart, x, x_apart, nullptr, 0, columns, rows);
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
  const std::int64_t size = runs ? across.extent : across.extent * std::min(side, along.extent);
  const std::int64_t places = to.shape.image() / across.extent / (runs ? 1 : along.extent);
  const auto& kernels = context.set.kernels<T>();
  context.pool.split(to.shape.n * places * tiles, std::max<std::int64_t>(1, grain / size),
                     [&](std::int64_t i, std::int64_t end) {
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
                         T* const y = image<T>(to, n) + target;
                         runs ? put(y, x, across.extent, adds)
                              : transpose(kernels, y, along.to, x, across.from, std::min(side, along.extent - first),
                                          across.extent, adds);
                       }
                     });
}

}  // namespace

Lowered lower(const Pad& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  const Box box = box_of(op, spec.x[0].shape, spec.y.shape);
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec,
        [&pool = context.pool, op, box](const Args& args) {
          op.by == PadBy::value ? scatter_in(pool, args.x[0], box, args.y, static_cast<T>(op.value))
                                : pad_by_cells<T>(pool, args, op);
        },
        [&pool = context.pool, op, box, adds = adds_dx(spec, 0)](const Args& args) {
          if (!wanted(args, 0)) return;
          op.by == PadBy::value ? copy_box<T>(pool, args.dy, box, args.dx[0], false, adds)
                                : unpad_by_cells<T>(pool, args, op, adds);
        });
  });
  return unit;
}

Lowered lower(const Slice& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec,
        [&pool = context.pool, box = box_of(op, spec.x[0].shape)](const Args& args) {
          copy_box<T>(pool, args.x[0], box, args.y, false, false);
        },
        [&pool = context.pool, box = box_of(op, spec.x[0].shape), adds = adds_dx(spec, 0)](const Args& args) {
          if (!wanted(args, 0)) return;
          adds ? copy_box<T>(pool, args.dx[0], box, args.dy, true, true)
               : scatter_in<T>(pool, args.dy, box, args.dx[0], 0);
        });
  });
  return unit;
}

Lowered lower(const Concat& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  const std::vector<Box> boxes = boxes_of(op, spec);
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec,
        [&pool = context.pool, boxes](const Args& args) {
          for (std::size_t i = 0; i < boxes.size(); ++i) copy_box<T>(pool, args.y, boxes[i], args.x[i], true, false);
        },
        [&pool = context.pool, boxes, spec](const Args& args) {
          for (std::size_t i = 0; i < boxes.size(); ++i)
            if (wanted(args, i)) copy_box<T>(pool, args.dy, boxes[i], args.dx[i], false, adds_dx(spec, i));
        });
  });
  return unit;
}

Lowered lower(const Reorder& op, const Spec& spec, const Choice&, const Context& context) {
  const std::vector<CopyAxis> axes = copy_axes(op);
  Lowered unit = reorder_unit(spec, axes);
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec,
        [&context, axes](const Args& args) {
          if (!same_place(args.x[0], args.y)) reorder<T>(context, args.x[0], args.y, axes, false);
        },
        [&context, back = inverse(axes), adds = adds_dx(spec, 0)](const Args& args) {
          if (wanted(args, 0) && !same_place(args.dx[0], args.dy)) reorder<T>(context, args.dy, args.dx[0], back, adds);
        });
  });
  return unit;
}

}  // namespace lamina::eigen
