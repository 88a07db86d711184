// y[n,:,place] = weight[x[n,place],:]. Rows of the table are read whole and transposed, some places at once.
//
// The weight's gradient is dense. Each thread has a range of rows, goes through all ids, and adds the gradients of the
// places whose row is in its range, in the order of the places.
//
// The global average pool after an embedding may be part of its unit: y[n,:] = mean over places of
// weight[x[n,place],:]. The embedding's own values are then not stored. A run of equal ids, such as padding, is one row
// times the length of the run.

#include <algorithm>
#include <limits>

#include "lib/backends/eigen/runtime/elements.h"
#include "lib/backends/eigen/runtime/labels.h"

namespace lamina::eigen {
namespace {

/// to += factor * from.
template <class T>
void add_row(T* to, const T* from, T factor, std::int64_t features) {
  LAMINA_INDEPENDENT
  for (std::int64_t f = 0; f < features; ++f) to[f] += factor * from[f];
}

/// Calls add(from, to) for ranges of rows that cover the table's gradient once. Without `adds` the rows are first set
/// to zero.
template <class T, class Add>
void split_rows(ThreadPool& pool, const Args& args, const Embedding& op, bool adds, Add&& add) {
  pool.split(op.vocabulary, 64, [&](std::int64_t from, std::int64_t to) {
    T* const dw = args.dw[0].as<T>();
    if (!adds) std::fill(dw + from * op.features, dw + to * op.features, T(0));
    add(from, to);
  });
}

constexpr std::int64_t together = 16;  // places: a line of memory in f32

/// Calls work(n, first place, places) for runs that cover every place of every image once.
template <class Work>
void split_runs(ThreadPool& pool, const Shape& shape, Work&& work) {
  split_chunks(pool, shape, together, std::max<std::int64_t>(1, 4096 / (together * shape.c)),
               [&](int, std::int64_t n, std::int64_t first, std::int64_t places) { work(n, first, places); });
}

template <class T>
void forward(ThreadPool& pool, const Args& args, const Embedding& op) {
  const T* const table = args.w[0].as<const T>();
  const std::int64_t plane = args.y.shape.plane(), features = op.features;
  split_runs(pool, args.y.shape, [&](std::int64_t n, std::int64_t first, std::int64_t places) {
    const T* const ids = image<const T>(args.x[0], n);
    const auto row_of = [&](std::int64_t place) { return whole_number(ids[place], op.vocabulary); };
    for (std::int64_t place = first + places; place < std::min(first + 2 * together, plane); ++place)
      prefetch(table + std::max<std::int64_t>(row_of(place), 0) * features, features);
    const T* rows[together];
    bool valid = true;
    for (std::int64_t i = 0; i < together; ++i) {
      const std::int64_t row = i < places ? row_of(first + i) : 0;
      valid = valid && row >= 0;
      rows[i] = table + std::max<std::int64_t>(row, 0) * features;
    }
    T* const y = image<T>(args.y, n) + first;
    for (std::int64_t f = 0; f < features; ++f)
      for (std::int64_t i = 0; i < places; ++i) y[f * plane + i] = rows[i][f];
    if (valid) return;
    for (std::int64_t i = 0; i < places; ++i)
      for (std::int64_t f = 0; f < features && row_of(first + i) < 0; ++f)
        y[f * plane + i] = std::numeric_limits<T>::quiet_NaN();
  });
}

/// The workspace has the gradients of y, with the features of a place side by side.
template <class T>
void backward(ThreadPool& pool, const Args& args, const Embedding& op, bool adds) {
  const Shape& y = args.dy.shape;
  const std::int64_t plane = y.plane(), features = op.features;
  T* const turned = static_cast<T*>(args.workspace);
  if (plane > 1)
    split_runs(pool, y, [&](std::int64_t n, std::int64_t first, std::int64_t places) {
      const T* const dy = image<const T>(args.dy, n) + first;
      T* const to = turned + (n * plane + first) * features;
      for (std::int64_t f = 0; f < features; ++f)
        for (std::int64_t i = 0; i < places; ++i) to[i * features + f] = dy[f * plane + i];
    });
  split_rows<T>(pool, args, op, adds, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t n = 0; n < y.n; ++n) {
      const T* const ids = image<const T>(args.x[0], n);
      for (std::int64_t place = 0; place < plane; ++place) {
        const std::int64_t row = whole_number(ids[place], op.vocabulary);
        if (row < from || row >= to) continue;
        const T* const term = plane > 1 ? turned + (n * plane + place) * features : image<const T>(args.dy, n);
        add_row(args.dw[0].as<T>() + row * features, term, T(1), features);
      }
    }
  });
}

constexpr std::int64_t ahead = 8;  // places from the used to the prefetched row

/// Calls work(place, uses) for each run of equal ids, with its first place and its length.
template <class T, class Work>
void for_runs(const T* ids, std::int64_t plane, Work&& work) {
  for (std::int64_t first = 0; first < plane;) {
    std::int64_t last = first + 1;
    while (last < plane && ids[last] == ids[first]) ++last;
    work(first, last - first);
    first = last;
  }
}

template <class T>
void mean_forward(ThreadPool& pool, const Args& args, const Embedding& op) {
  const T* const table = args.w[0].as<const T>();
  const std::int64_t plane = args.x[0].shape.plane(), features = op.features;
  pool.each(args.y.shape.n, 1, [&](std::int64_t n) {
    const T* const ids = image<const T>(args.x[0], n);
    T* const y = image<T>(args.y, n);
    std::fill_n(y, features, T(0));
    for_runs(ids, plane, [&](std::int64_t place, std::int64_t uses) {
      const std::int64_t row = whole_number(ids[place], op.vocabulary);
      const std::int64_t next = place + ahead < plane ? whole_number(ids[place + ahead], op.vocabulary) : row;
      if (next >= 0) prefetch(table + next * features, features);
      if (row >= 0)
        add_row(y, table + row * features, static_cast<T>(uses), features);
      else
        std::fill_n(y, features, std::numeric_limits<T>::quiet_NaN());
    });
    for (std::int64_t f = 0; f < features; ++f) y[f] /= static_cast<T>(plane);
  });
}

template <class T>
void mean_backward(ThreadPool& pool, const Args& args, const Embedding& op, bool adds) {
  const std::int64_t plane = args.x[0].shape.plane(), features = op.features;
  split_rows<T>(pool, args, op, adds, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t n = 0; n < args.dy.shape.n; ++n) {
      const T* const ids = image<const T>(args.x[0], n);
      const T* const dy = image<const T>(args.dy, n);
      for_runs(ids, plane, [&](std::int64_t place, std::int64_t uses) {
        const std::int64_t row = whole_number(ids[place], op.vocabulary);
        if (row < from || row >= to) return;
        add_row(args.dw[0].as<T>() + row * features, dy, static_cast<T>(uses) / static_cast<T>(plane), features);
      });
    }
  });
}

}  // namespace

Lowered lower(const Embedding& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  unit.backward_reads_x[0] = true;
  return with_type(spec.y.dtype, [&]<class T>() {
    const bool is_mean = !spec.tail.empty(), turns = !is_mean && spec.y.shape.plane() > 1;
    return with_steps(
        unit, spec,
        [&pool = context.pool, op, is_mean](const Args& args) {
          is_mean ? mean_forward<T>(pool, args, op) : forward<T>(pool, args, op);
        },
        [&pool = context.pool, op, is_mean, adds = spec.adds_dw](const Args& args) {
          is_mean ? mean_backward<T>(pool, args, op, adds) : backward<T>(pool, args, op, adds);
        },
        0, turns ? static_cast<std::size_t>(spec.y.shape.count()) * sizeof(T) : 0, {Pass::backward_params});
  });
}

}  // namespace lamina::eigen
