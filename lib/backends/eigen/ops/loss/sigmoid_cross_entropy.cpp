// Mean of -log of the probability that a sigmoid gives the label, and the share of right decisions. Every element is a
// decision. Saved: 1 / (number of decisions that count).

#include <cmath>
#include <limits>

#include "lib/backends/eigen/ops/exponentials.h"
#include "lib/backends/eigen/runtime/labels.h"
#include "loss.h"

namespace lamina::eigen {
namespace {

/// The limit at which logits are clipped.
template <class T>
T limit_of(const SigmoidCrossEntropy& op) {
  return op.clip == 0 ? std::numeric_limits<T>::infinity() : static_cast<T>(std::log1p(-op.clip) - std::log(op.clip));
}

/// The batch as one image if its tensors are dense: chunks may then cross images.
Shape flat(const Args& args, bool with_dx) {
  const Shape& shape = args.x[0].shape;
  const bool dense = args.x[0].dense() && args.x[1].dense() && (!with_dx || args.dx[0].dense());
  if (!dense || shape.count() > std::numeric_limits<int>::max())
    return {shape.n, 1, 1, static_cast<int>(shape.image())};
  return {1, 1, 1, static_cast<int>(shape.count())};
}

std::int64_t chunks_of(const Shape& shape) { return shape.n * ((shape.plane() + chunk - 1) / chunk); }

template <class T>
RowLoss forward_chunk(const T* x, const T* labels, std::int64_t count, T limit) {
  Chunk<T> logits, logs;
  load(x, count, logits);
  logs = (-logits.abs()).max(-limit);
  logs = logs.exp().log1p();
  RowLoss sum;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = class_of(labels[i], 2);
    if (label == ignored_label) continue;
    const T z = std::min(std::max(x[i], -limit), limit);
    const T loss = std::max(z, T(0)) - (label == 1 ? z : T(0)) + logs[i];
    const bool sound = label != invalid_number && x[i] == x[i];
    sum.loss += sound ? static_cast<double>(loss) : std::numeric_limits<double>::quiet_NaN();
    sum.right += sound && (x[i] > 0) == (label == 1) ? 1 : 0;
    ++sum.count;
  }
  return sum;
}

template <class T>
void forward(ThreadPool& pool, const Args& args, const SigmoidCrossEntropy& op, bool training) {
  const Shape shape = flat(args, false);
  const std::int64_t chunks = chunks_of({1, 1, 1, shape.w});
  auto* const sums = static_cast<RowLoss*>(args.workspace);
  split_chunks(pool, shape, [&](std::int64_t n, std::int64_t first, std::int64_t count) {
    sums[n * chunks + first / chunk] = forward_chunk(image<const T>(args.x[0], n) + first,
                                                     image<const T>(args.x[1], n) + first, count, limit_of<T>(op));
  });
  const T inverse_count = put_loss<T>(args.y, sums, chunks_of(shape));
  if (training) *static_cast<T*>(args.saved) = inverse_count;
}

template <class T>
void backward(ThreadPool& pool, const Args& args, const SigmoidCrossEntropy& op, bool adds) {
  if (!wanted(args, 0)) return;
  const T scale = args.dy.as<T>()[0] * *static_cast<const T*>(args.saved), limit = limit_of<T>(op);
  split_chunks(pool, flat(args, true), [&](std::int64_t n, std::int64_t first, std::int64_t count) {
    const T *x = image<const T>(args.x[0], n) + first, *labels = image<const T>(args.x[1], n) + first;
    Chunk<T> p;
    load(x, count, p);
    sigmoid_of(p);
    put_each(image<T>(args.dx[0], n) + first, count, adds, [=, &p](std::int64_t i) {
      const std::int64_t label = class_of(labels[i], 2);
      if (label == invalid_number) return std::numeric_limits<T>::quiet_NaN();
      if (label == ignored_label || std::abs(x[i]) > limit) return T(0);
      return scale * (p[i] - (label == 1 ? T(1) : T(0)));
    });
  });
}

}  // namespace

Lowered lower(const SigmoidCrossEntropy& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  const Shape& x = spec.x[0].shape;
  unit.backward_reads_x = {true, true};
  return with_type(spec.y.dtype, [&]<class T>() {
    const auto most = static_cast<std::size_t>(chunks_of({x.n, 1, 1, static_cast<int>(x.image())}));
    const bool training = spec.mode == Mode::training;
    if (training) unit.saved_bytes = sizeof(T);
    return with_steps(
        unit, spec, [&pool = context.pool, op, training](const Args& args) { forward<T>(pool, args, op, training); },
        [&pool = context.pool, op, adds = adds_dx(spec, 0)](const Args& args) { backward<T>(pool, args, op, adds); },
        most * sizeof(RowLoss));
  });
}

}  // namespace lamina::eigen
