// Recurrent: a forward pass, and one backward pass that computes the gradients of weights and of x together.

#include "lib/backends/eigen/recurrent/backward.h"
#include "lib/backends/eigen/recurrent/forward.h"

namespace lamina::eigen {

Lowered lower(const Recurrent& op, const Spec& spec, const Choice&, const Context& context) {
  Lowered unit = empty_unit(spec);
  unit.backward_reads_x[0] = true;
  const bool training = spec.mode == Mode::training;
  with_type(spec.y.dtype, [&]<class T>() {
    ThreadPool& pool = context.pool;
    const RecurrentRows<T> rows(op, spec.x.at(0).shape, pool.threads(), context.set.of<T>().kernels);
    const RecurrentForward<T> forward(rows, training);
    unit.steps.push_back(work_step({Pass::forward}, "direct", forward, pool));
    if (!training) {
      unit.prepared_bytes = forward.prepared_bytes();
      unit.steps.push_back(
          step({Pass::prepare}, "direct", [forward, &pool](const Args& args) { forward.prepare(args, pool); }));
      return;
    }
    unit.saved_bytes = forward.saved_bytes();
    const RecurrentBackward<T> backward(rows, adds_dx(spec, 0), spec.adds_dw,
                                        op.vocabulary == 0 && spec.wants_dx.at(0));
    unit.steps.push_back(work_step(gradient_passes(spec), "direct", backward, pool));
  });
  return unit;
}

}  // namespace lamina::eigen
