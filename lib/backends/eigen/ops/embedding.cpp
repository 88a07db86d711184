// y[n,:,place] = weight[x[n,place],:]. Rows of the table are read whole and transposed, some places at once.
//
// The weight's gradient is dense. Each thread has a range of rows, goes through all ids, and adds the gradients of the
// places whose row is in its range, in their order. embedding_mean.cpp has the unit of an embedding and its mean.

#include <algorithm>
#include <limits>

#include "embedding.h"
#include "lib/backends/eigen/runtime/elements.h"
#include "lib/backends/eigen/runtime/labels.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t together = 16;  // places: a line of memory in f32

/// Calls work(n, first place, places) for runs that cover every place of every image once.
template <class Work>
void split_runs(ThreadPool& pool, const Shape& shape, Work&& work) {
  const std::int64_t plane = shape.plane(), runs = (plane + together - 1) / together;
  pool.split(shape.n * runs, std::max<std::int64_t>(1, 4096 / (together * shape.c)),
             [&](std::int64_t from, std::int64_t to) {
               for (std::int64_t i = from; i < to; ++i) {
                 const std::int64_t first = i % runs * together;
                 work(i / runs, first, std::min(together, plane - first));
               }
             });
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

/// The workspace of backward: the gradients of y, with the features of a place side by side.
template <class T>
std::size_t backward_workspace(const Shape& y) {
  return y.plane() == 1 ? 0 : static_cast<std::size_t>(y.count()) * sizeof(T);
}

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

}  // namespace

Lowered lower(const Embedding& op, const Spec& spec, const Choice&, const Context& context) {
  if (!spec.tail.empty()) return lower_embedding_mean(op, spec, context);
  Lowered unit = empty_unit(spec);
  unit.backward_reads_x[0] = true;
  unit.recompute_reads_x[0] = true;
  with_type(spec.y.dtype, [&]<class T>() {
    ThreadPool& pool = context.pool;
    const auto run = [&pool, op](const Args& args) { forward<T>(pool, args, op); };
    unit.steps.push_back(step({Pass::forward}, "direct", run));
    if (spec.mode == Mode::inference) return;
    unit.steps.push_back(step({Pass::recompute}, "direct", run));
    unit.steps.push_back(step(
        {Pass::backward_params}, "direct",
        [&pool, op, adds = spec.adds_dw](const Args& args) { backward<T>(pool, args, op, adds); },
        backward_workspace<T>(spec.y.shape)));
  });
  return unit;
}

}  // namespace lamina::eigen
