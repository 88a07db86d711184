// y[n,:] = mean over places of weight[x[n,place],:]: an embedding and the global average pool after it, without the
// values between them.
//
// A run of equal ids, such as padding, is one row times the length of the run. The weight's gradient is dense; each
// thread has a range of rows, as in embedding.cpp.

#include <limits>

#include "embedding.h"
#include "lib/backends/eigen/runtime/labels.h"

namespace lamina::eigen {
namespace {

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
  pool.split(args.y.shape.n, 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t n = from; n < to; ++n) {
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
    }
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

Lowered lower_embedding_mean(const Embedding& op, const Spec& spec, const Context& context) {
  Lowered unit = empty_unit(spec);
  unit.backward_reads_x[0] = true;
  unit.recompute_reads_x[0] = true;
  with_type(spec.y.dtype, [&]<class T>() {
    ThreadPool& pool = context.pool;
    const auto run = [&pool, op](const Args& args) { mean_forward<T>(pool, args, op); };
    unit.steps.push_back(step({Pass::forward}, "direct", run));
    if (spec.mode == Mode::inference) return;
    unit.steps.push_back(step({Pass::recompute}, "direct", run));
    unit.steps.push_back(step({Pass::backward_params}, "direct", [&pool, op, adds = spec.adds_dw](const Args& args) {
      mean_backward<T>(pool, args, op, adds);
    }));
  });
  return unit;
}

}  // namespace lamina::eigen
