// Softmax along one axis. The gradient is computed from y alone.

#include "kernels/softmax.h"

#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const Softmax& op, const Spec& spec, const Choice&, Machine& machine) {
  const CellsAlong of = cells_along(along(spec.y.shape, op));
  return with_type(machine.backend, spec.y.dtype, [&]<class T>() {
    return with_launches(
        in_place_unit(spec), spec, machine,
        [of, log = op.log](Stream stream, const Args& args) {
          softmax_forward(stream, view<const T>(args.x[0]), of, log, view<T>(args.y));
        },
        to_dx(spec, [of, log = op.log](Stream stream, const Args& args, const Tensor& dx, bool adds) {
          softmax_backward(stream, view<const T>(args.y), view<const T>(args.dy), of, log, view<T>(dx), adds);
        }));
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
