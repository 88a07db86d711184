// Ops that move elements: a border of a constant or of cells, axes in another order.

#include <algorithm>
#include <vector>

#include "lib/backends/eigen/runtime/elements.h"
#include "lib/core/units/reorder.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t grain = 4096;  // elements; less is not worth waking a thread

template <class T>
void pad_rows(ThreadPool& pool, const Args& args, const Pad& op) {
  const Tensor &x = args.x[0], &y = args.y;
  const std::int64_t height = y.shape.h, width = y.shape.w, inside = x.shape.w;
  const T value = static_cast<T>(op.value);
  pool.split(y.shape.count() / width, std::max<std::int64_t>(1, grain / width),
             [&](std::int64_t from, std::int64_t to) {
               for (std::int64_t i = from; i < to; ++i) {
                 const std::int64_t plane = i / height, n = plane / y.shape.c, c = plane % y.shape.c,
                                    h = i % height - op.before.h;
                 T* const row = image<T>(y, n) + (c * height + i % height) * width;
                 if (h < 0 || h >= x.shape.h) {
                   std::fill_n(row, width, value);
                   continue;
                 }
                 std::fill_n(row, op.before.w, value);
                 std::copy_n(image<const T>(x, n) + (c * x.shape.h + h) * inside, inside, row + op.before.w);
                 std::fill_n(row + op.before.w + inside, op.after.w, value);
               }
             });
}

template <class T>
void unpad_rows(ThreadPool& pool, const Args& args, const Pad& op, bool adds) {
  const Tensor &dx = args.dx[0], &dy = args.dy;
  const std::int64_t height = dx.shape.h, width = dx.shape.w;
  pool.split(dx.shape.count() / width, std::max<std::int64_t>(1, grain / width),
             [&](std::int64_t from, std::int64_t to) {
               for (std::int64_t i = from; i < to; ++i) {
                 const std::int64_t plane = i / height, n = plane / dx.shape.c, c = plane % dx.shape.c;
                 const std::int64_t row = c * dy.shape.h + i % height + op.before.h;
                 put(image<T>(dx, n) + (c * height + i % height) * width,
                     image<const T>(dy, n) + row * dy.shape.w + op.before.w, width, adds);
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
  const bool by_value = op.by == PadBy::value;
  with_type(spec.y.dtype, [&]<class T>() {
    add_steps(
        unit, spec,
        [&pool = context.pool, op, forward = by_value ? pad_rows<T> : pad_by_cells<T>](const Args& args) {
          forward(pool, args, op);
        },
        [&pool = context.pool, op, backward = by_value ? unpad_rows<T> : unpad_by_cells<T>,
         adds = adds_dx(spec, 0)](const Args& args) {
          if (wanted(args, 0)) backward(pool, args, op, adds);
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
