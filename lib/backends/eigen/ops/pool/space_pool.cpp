// Pools with dilated windows, any pads, or a third axis: cell by cell, for what max_pool and average_pool lack.

#include <limits>

#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {
namespace {

/// The windows along one axis.
struct Along {
  std::int64_t extent, count;
  std::int64_t size, stride, before, after, dilation;

  Along(std::int64_t its_extent, std::int64_t its_count, const PoolAxis& axis)
      : extent(its_extent),
        count(its_count),
        size(axis.size),
        stride(axis.stride),
        before(axis.before),
        after(axis.after),
        dilation(axis.dilation) {}

  std::int64_t begin(std::int64_t window) const { return window * stride - before; }

  /// Cells of a window that begin below `end`: the first so many.
  std::int64_t cells_below(std::int64_t window, std::int64_t end) const {
    const std::int64_t room = end - begin(window);
    return room <= 0 ? 0 : std::min(size, (room - 1) / dilation + 1);
  }

  /// Calls visit(position in the image) for the cells of a window that are inside.
  template <class Visit>
  void inside(std::int64_t window, const Visit& visit) const {
    const std::int64_t from = begin(window) < 0 ? (-begin(window) + dilation - 1) / dilation : 0;
    const std::int64_t to = cells_below(window, extent);
    for (std::int64_t k = from; k < to; ++k) visit(begin(window) + k * dilation);
  }

  /// Cells of a window that count towards a mean.
  std::int64_t counted(std::int64_t window, bool count_padding) const {
    if (count_padding) return cells_below(window, extent + after);
    return cells_below(window, extent) - cells_below(window, 0);
  }
};

/// Volumes of slices, rows and columns.
struct Space {
  Along depth, rows, columns;
  bool count_padding;

  Space(const SpacePool& op, const Shape& x, const Shape& y)
      : depth(op.slices, y.c / (x.c / op.slices), op.depth),
        rows(x.h, y.h, op.rows),
        columns(x.w, y.w, op.columns),
        count_padding(op.count_padding) {}

  std::int64_t x_cells() const { return depth.extent * rows.extent * columns.extent; }
  std::int64_t windows() const { return depth.count * rows.count * columns.count; }

  /// Calls visit(place in the volume) for the cells of a window that are inside, in their order.
  template <class Visit>
  void inside(std::int64_t d, std::int64_t p, std::int64_t q, const Visit& visit) const {
    depth.inside(d, [&](std::int64_t slice) {
      rows.inside(p, [&](std::int64_t h) {
        columns.inside(q, [&](std::int64_t w) { visit((slice * rows.extent + h) * columns.extent + w); });
      });
    });
  }

  /// Calls visit(number of the window, d, p, q) for every window of a volume.
  template <class Visit>
  void each_window(const Visit& visit) const {
    std::int64_t i = 0;
    for (std::int64_t d = 0; d < depth.count; ++d)
      for (std::int64_t p = 0; p < rows.count; ++p)
        for (std::int64_t q = 0; q < columns.count; ++q) visit(i++, d, p, q);
  }

  std::int64_t counted(std::int64_t d, std::int64_t p, std::int64_t q) const {
    return depth.counted(d, count_padding) * rows.counted(p, count_padding) * columns.counted(q, count_padding);
  }
};

/// Calls work(number of the volume, volume of x, volume of y) on the threads.
template <class X, class Y, class Work>
void split_volumes(Pool& pool, const Space& space, const Tensor& x, const Tensor& y, const Work& work) {
  const std::int64_t volumes = x.shape.c / space.depth.extent;
  pool.split(x.shape.n * volumes, 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i)
      work(i, image<X>(x, i / volumes) + i % volumes * space.x_cells(),
           image<Y>(y, i / volumes) + i % volumes * space.windows());
  });
}

/// y: the maxima, or the places of the first of each in x. `winners`: of each window that place in its volume, -1
/// without a cell; null: not wanted.
template <class T>
void maxima(Pool& pool, const Args& args, const Space& space, bool places, std::int32_t* winners) {
  split_volumes<const T, T>(pool, space, args.x[0], args.y, [&](std::int64_t volume, const T* x, T* y) {
    space.each_window([&](std::int64_t i, std::int64_t d, std::int64_t p, std::int64_t q) {
      T largest = -std::numeric_limits<T>::infinity();
      std::int64_t winner = -1;
      space.inside(d, p, q, [&](std::int64_t place) {
        // Greater, or a NaN; a NaN stays, so that the first one wins.
        if (winner >= 0 && (x[place] <= largest || largest != largest)) return;
        largest = x[place];
        winner = place;
      });
      y[i] = largest;
      if (places) y[i] = static_cast<T>(winner < 0 ? -1 : volume * space.x_cells() + winner);
      if (winners != nullptr) winners[volume * space.windows() + i] = static_cast<std::int32_t>(winner);
    });
  });
}

template <class T>
void maxima_backward(Pool& pool, const Args& args, const Space& space, bool adds) {
  const auto* winners = static_cast<const std::int32_t*>(args.saved);
  split_volumes<T, const T>(pool, space, args.dx[0], args.dy, [&](std::int64_t volume, T* dx, const T* dy) {
    if (!adds) std::fill_n(dx, space.x_cells(), T(0));
    for (std::int64_t i = 0; i < space.windows(); ++i)
      if (const std::int32_t winner = winners[volume * space.windows() + i]; winner >= 0) dx[winner] += dy[i];
  });
}

template <class T>
void means(Pool& pool, const Args& args, const Space& space) {
  split_volumes<const T, T>(pool, space, args.x[0], args.y, [&](std::int64_t, const T* x, T* y) {
    space.each_window([&](std::int64_t i, std::int64_t d, std::int64_t p, std::int64_t q) {
      T sum = 0;
      space.inside(d, p, q, [&](std::int64_t place) { sum += x[place]; });
      const std::int64_t counted = space.counted(d, p, q);
      y[i] = counted == 0 ? T(0) : sum / static_cast<T>(counted);
    });
  });
}

template <class T>
void means_backward(Pool& pool, const Args& args, const Space& space, bool adds) {
  split_volumes<T, const T>(pool, space, args.dx[0], args.dy, [&](std::int64_t, T* dx, const T* dy) {
    if (!adds) std::fill_n(dx, space.x_cells(), T(0));
    space.each_window([&](std::int64_t i, std::int64_t d, std::int64_t p, std::int64_t q) {
      const T share = dy[i] / static_cast<T>(std::max<std::int64_t>(1, space.counted(d, p, q)));
      space.inside(d, p, q, [&](std::int64_t place) { dx[place] += share; });
    });
  });
}

template <class T>
void emit_maxima(Lowered& unit, const Spec& spec, const Space& space, bool places, Pool& pool) {
  const auto without_winners = [&pool, space, places](const Args& args) {
    maxima<T>(pool, args, space, places, nullptr);
  };
  if (spec.mode == Mode::inference || places) {
    unit.steps.push_back(step({Pass::forward}, "direct", without_winners));
    return;
  }
  unit.saved_bytes = static_cast<std::size_t>(spec.y.shape.count()) * sizeof(std::int32_t);
  unit.steps.push_back(step({Pass::forward}, "direct", [&pool, space](const Args& args) {
    maxima<T>(pool, args, space, false, static_cast<std::int32_t*>(args.saved));
  }));
  unit.steps.push_back(step({Pass::recompute}, "direct", without_winners));
  unit.steps.push_back(step({Pass::backward_data}, "direct", [&pool, space, adds = adds_dx(spec, 0)](const Args& args) {
    if (wanted(args, 0)) maxima_backward<T>(pool, args, space, adds);
  }));
}

}  // namespace

Lowered lower(const SpacePool& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  unit.recompute_reads_x[0] = true;
  const Space space(op, spec.x[0].shape, spec.y.shape);
  with_type(spec.y.dtype, [&]<class T>() {
    if (op.of != PoolOf::mean) return emit_maxima<T>(unit, spec, space, op.of == PoolOf::place, context.pool);
    add_steps(
        unit, spec, [&pool = context.pool, space](const Args& args) { means<T>(pool, args, space); },
        [&pool = context.pool, space, adds = adds_dx(spec, 0)](const Args& args) {
          if (wanted(args, 0)) means_backward<T>(pool, args, space, adds);
        });
  });
  return unit;
}

}  // namespace lamina::eigen
