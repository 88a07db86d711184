// Local response normalisation. Nothing is saved: backward recomputes the scale from x.

#include "kernels/norm/lrn.h"

#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const Lrn& op, const Spec& spec, const Choice&, Machine& machine) {
  Lowered unit = empty_unit(spec);
  unit.backward_reads_x[0] = true;
  const LrnNumbers numbers = {.size = op.size, .alpha = op.alpha, .beta = op.beta, .k = op.k};
  return with_storage(machine.backend, spec.y.dtype, [&]<class T>() {
    const auto forward = [numbers](Stream stream, const Args& args) {
      lrn_forward(stream, numbers, view<const T>(args.x[0]), view<T>(args.y));
    };
    const auto backward = [numbers](Stream stream, const Args& args, const Tensor& dx, bool adds) {
      lrn_backward(stream, numbers, view<const T>(args.x[0]), view<const T>(args.dy), view<T>(dx), adds);
    };
    return with_launches(unit, spec, machine, forward, to_dx(spec, backward));
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
