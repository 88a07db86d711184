// y[n,:,place] = weight[x[n,place],:]. Rows of the table are read whole and turned into channels, some places at once.
//
// The weight's gradient is dense. The ids are sorted by row, then place; each thread has a range of rows and writes
// each of them once: the sum of the gradients of its places in their order, or zeros. The sorted ids tell which rows a
// batch touches (`row_end`).

#include <algorithm>
#include <cstring>
#include <limits>

#include "../runtime/elements.h"
#include "../runtime/labels.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t together = 16;  // places: a line of memory in f32

/// One use of a row by a place of the batch.
struct Use {
  std::int64_t row, place;
};

/// The first use after `first` of another row.
const Use* row_end(const Use* first, const Use* last) {
  return std::find_if(first, last, [row = first->row](const Use& use) { return use.row != row; });
}

/// Calls work(n, first place, places) for runs that cover every place of every image once.
template <class Work>
void split_runs(Pool& pool, const Shape& shape, Work&& work) {
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
void forward(Pool& pool, const Args& args, const Embedding& op) {
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

/// Valid ids in the order of their rows, then of their places. Returns how many.
template <class T>
std::int64_t sort_uses(const Tensor& ids, std::int64_t vocabulary, Use* uses) {
  const std::int64_t plane = ids.shape.plane();
  std::int64_t count = 0;
  for (std::int64_t n = 0; n < ids.shape.n; ++n)
    for (std::int64_t place = 0; place < plane; ++place) {
      const std::int64_t row = whole_number(image<const T>(ids, n)[place], vocabulary);
      if (row >= 0) uses[count++] = {row, n * plane + place};
    }
  std::sort(uses, uses + count,
            [](const Use& a, const Use& b) { return a.row != b.row ? a.row < b.row : a.place < b.place; });
  return count;
}

/// Rows [from, to) of the table's gradient. `gradient(place)` is where the features of a place lie together.
template <class T, bool Adds, class Gradient>
void put_rows(T* dw, std::int64_t features, std::int64_t from, std::int64_t to, const Use* use, const Use* last,
              const Gradient& gradient) {
  for (std::int64_t row = from; row < to;) {
    const std::int64_t next = use == last ? to : std::min(use->row, to);
    if (!Adds) std::fill(dw + row * features, dw + next * features, T(0));
    if (next == to) return;
    const Use* const end = row_end(use, last);
    T* const sum = dw + next * features;
    if (!Adds) std::copy_n(gradient(use++->place), features, sum);
    for (; use != end; ++use) {
      const T* const term = gradient(use->place);
      LAMINA_INDEPENDENT
      for (std::int64_t f = 0; f < features; ++f) sum[f] += term[f];
    }
    row = next + 1;
  }
}

/// The workspace of backward: the uses, then the gradients of y with the features of a place together.
template <class T>
struct Workspace {
  Use* uses;
  T* gradients;

  Workspace(void* at, std::int64_t places)
      : uses(static_cast<Use*>(at)), gradients(reinterpret_cast<T*>(uses + places)) {}

  static std::size_t bytes(const Shape& y) {
    const auto places = static_cast<std::size_t>(y.n * y.plane());
    return places * sizeof(Use) + (y.plane() == 1 ? 0 : static_cast<std::size_t>(y.count()) * sizeof(T));
  }
};

template <class T>
void backward(Pool& pool, const Args& args, const Embedding& op, bool adds) {
  const Shape& y = args.dy.shape;
  const std::int64_t plane = y.plane(), features = op.features;
  const Workspace<T> lent(args.workspace, y.n * plane);
  if (plane > 1)
    split_runs(pool, y, [&](std::int64_t n, std::int64_t first, std::int64_t places) {
      const T* const dy = image<const T>(args.dy, n) + first;
      T* const to = lent.gradients + (n * plane + first) * features;
      for (std::int64_t f = 0; f < features; ++f)
        for (std::int64_t i = 0; i < places; ++i) to[i * features + f] = dy[f * plane + i];
    });
  const auto gradient = [&](std::int64_t place) {
    return plane > 1 ? lent.gradients + place * features : image<const T>(args.dy, place);
  };
  const Use* const last = lent.uses + sort_uses<T>(args.x[0], op.vocabulary, lent.uses);
  with_flag(adds, [&](auto add) {
    pool.split(op.vocabulary, 64, [&](std::int64_t from, std::int64_t to) {
      const Use* const first =
          std::partition_point(lent.uses, const_cast<Use*>(last), [&](const Use& use) { return use.row < from; });
      put_rows<T, decltype(add)::value>(args.dw[0].as<T>(), features, from, to, first, last, gradient);
    });
  });
}

}  // namespace

Lowered lower(const Embedding& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  unit.backward_reads_x[0] = true;
  unit.recompute_reads_x[0] = true;
  with_type(spec.y.dtype, [&]<class T>() {
    Pool& pool = context.pool;
    const auto run = [&pool, op](const Args& args) { forward<T>(pool, args, op); };
    unit.steps.push_back(step({Pass::forward}, "direct", run));
    if (spec.mode == Mode::inference) return;
    unit.steps.push_back(step({Pass::recompute}, "direct", run));
    unit.steps.push_back(step(
        {Pass::backward_params}, "direct",
        [&pool, op, adds = spec.adds_dw](const Args& args) { backward<T>(pool, args, op, adds); },
        Workspace<T>::bytes(spec.y.shape)));
  });
  return unit;
}

}  // namespace lamina::eigen
