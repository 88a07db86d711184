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
  with_flag(adds, [&](auto add) {
    for (std::int64_t i = 0; i < count; ++i) {
      T& element = to[i * to_step];
      element = add ? element + from[i * from_step] : from[i * from_step];
    }
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

/// part = the box of whole, or part +=.
template <class T>
void gather(ThreadPool& pool, const Tensor& whole, const Box& box, const Tensor& part, bool adds) {
  const bool is_there = image<T>(whole, 0) + box.offset() == part.as<T>() && whole.pitch == part.pitch;
  if (box.is_run() && is_there && !adds) return;
  for_each_run(pool, box, part.shape.n, [&](std::int64_t n, std::int64_t to, std::int64_t from, std::int64_t count) {
    put_apart(image<T>(part, n) + to, 1, image<const T>(whole, n) + from, box.axes[2].step, count, adds);
  });
}

/// The box of whole = part, or the box +=.
template <class T>
void scatter(ThreadPool& pool, const Tensor& part, const Box& box, const Tensor& whole, bool adds) {
  const bool is_there = image<T>(whole, 0) + box.offset() == part.as<T>() && whole.pitch == part.pitch;
  if (box.is_run() && is_there && !adds) return;
  for_each_run(pool, box, part.shape.n, [&](std::int64_t n, std::int64_t from, std::int64_t to, std::int64_t count) {
    put_apart(image<T>(whole, n) + to, box.axes[2].step, image<const T>(part, n) + from, 1, count, adds);
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

/// Pads with a border of cells.
template <class T>
void pad_by_cells(ThreadPool& pool, const Args& args, const Pad& op) {
  const Tensor &x = args.x[0], &y = args.y;
  split_planes(pool, y.shape, [&](std::int64_t n, std::int64_t c) {
    const T* const from = image<const T>(x, n) + c * x.shape.plane();
    T* to = image<T>(y, n) + c * y.shape.plane();
    for (std::int64_t p = 0; p < y.shape.h; ++p) {
      const T* const row = from + shown(op.by, p - op.before.h, x.shape.h) * x.shape.w;
      for (std::int64_t q = 0; q < y.shape.w; ++q) *to++ = row[shown(op.by, q - op.before.w, x.shape.w)];
    }
  });
}

template <class T>
void unpad_by_cells(ThreadPool& pool, const Args& args, const Pad& op, bool adds) {
  const Tensor &dx = args.dx[0], &dy = args.dy;
  split_planes(pool, dx.shape, [&](std::int64_t n, std::int64_t c) {
    T* const to = image<T>(dx, n) + c * dx.shape.plane();
    const T* from = image<const T>(dy, n) + c * dy.shape.plane();
    if (!adds) std::fill_n(to, dx.shape.plane(), T(0));
    for (std::int64_t p = 0; p < dy.shape.h; ++p) {
      T* const row = to + shown(op.by, p - op.before.h, dx.shape.h) * dx.shape.w;
      for (std::int64_t q = 0; q < dy.shape.w; ++q) row[shown(op.by, q - op.before.w, dx.shape.w)] += *from++;
    }
  });
}

/// Copies images by `axes`. Where the innermost axes of source and target differ, tiles of both are transposed, so that
/// each line of memory is used while it is in cache.
template <class T>
void reorder(ThreadPool& pool, const Tensor& from, const Tensor& to, const std::vector<CopyAxis>& axes, bool adds) {
  constexpr std::int64_t side = 16;
  const CopyAxis across = axes.back();  // innermost in the target
  const CopyAxis along = *std::ranges::find(axes, 1, &CopyAxis::from);
  const bool runs = along.to == 1;
  const std::int64_t tiles = runs ? 1 : divide_up(along.extent, side);
  const std::int64_t size = runs ? across.extent : across.extent * std::min(side, along.extent);
  const std::int64_t places = to.shape.image() / across.extent / (runs ? 1 : along.extent);
  pool.split(to.shape.n * places * tiles, std::max<std::int64_t>(1, grain / size),
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
                 if (runs) {
                   put(y, x, across.extent, adds);
                   continue;
                 }
                 const std::int64_t rows = std::min(side, along.extent - first);
                 with_flag(adds, [&](auto add) {
                   for (std::int64_t c = 0; c < across.extent; c += side)
                     for (std::int64_t row = 0; row < rows; ++row)
                       for (std::int64_t k = c; k < std::min(across.extent, c + side); ++k) {
                         const T value = x[row + k * across.from];
                         T& place_of = y[row * along.to + k];
                         place_of = add ? place_of + value : value;
                       }
                 });
               }
             });
}

}  // namespace

Lowered lower(const Pad& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  unit.recompute_reads_x[0] = true;
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
          op.by == PadBy::value ? gather<T>(pool, args.dy, box, args.dx[0], adds)
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
          gather<T>(pool, args.x[0], box, args.y, false);
        },
        [&pool = context.pool, box = box_of(op, spec.x[0].shape), adds = adds_dx(spec, 0)](const Args& args) {
          if (!wanted(args, 0)) return;
          adds ? scatter<T>(pool, args.dy, box, args.dx[0], true) : scatter_in<T>(pool, args.dy, box, args.dx[0], 0);
        });
  });
  finish_parts(unit, spec);
  return unit;
}

Lowered lower(const Concat& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  const std::vector<Box> boxes = boxes_of(op, spec);
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec,
        [&pool = context.pool, boxes](const Args& args) {
          for (std::size_t i = 0; i < boxes.size(); ++i) scatter<T>(pool, args.x[i], boxes[i], args.y, false);
        },
        [&pool = context.pool, boxes, spec](const Args& args) {
          for (std::size_t i = 0; i < boxes.size(); ++i)
            if (wanted(args, i)) gather<T>(pool, args.dy, boxes[i], args.dx[i], adds_dx(spec, i));
        });
  });
  finish_parts(unit, spec);
  return unit;
}

Lowered lower(const Reorder& op, const Spec& spec, const Choice&, const Context& context) {
  const std::vector<CopyAxis> axes = copy_axes(op);
  Lowered unit = reorder_unit(spec, axes);
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec,
        [&pool = context.pool, axes](const Args& args) {
          if (!same_place(args.x[0], args.y)) reorder<T>(pool, args.x[0], args.y, axes, false);
        },
        [&pool = context.pool, back = inverse(axes), adds = adds_dx(spec, 0)](const Args& args) {
          if (wanted(args, 0) && !same_place(args.dx[0], args.dy)) reorder<T>(pool, args.dy, args.dx[0], back, adds);
        });
  });
  return unit;
}

}  // namespace lamina::eigen
