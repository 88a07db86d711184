// The mean of each window. Nothing is saved; backward reads only dy.

#include "kernels/pool/average_pool.h"

#include "lib/backends/cuda/common.h"
#include "windows_of.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const AveragePool& op, const Spec& spec, const Choice&, Machine& machine) {
  Lowered unit = empty_unit(spec);
  unit.recompute_reads_x[0] = true;
  const Windows windows = windows_of(op, spec);
  with_storage(spec.y.dtype, [&]<class T>() {
    const auto forward = [windows, counts = op.count_padding](Stream stream, const Args& args) {
      average_pool_forward(stream, windows, counts, view<const T>(args.x[0]), view<T>(args.y));
    };
    const auto backward = [windows, counts = op.count_padding, adds = adds_dx(spec, 0)](Stream stream,
                                                                                        const Args& args) {
      if (wanted(args, 0))
        average_pool_backward(stream, windows, counts, view<const T>(args.dy), view<T>(args.dx[0]), adds);
    };
    add_launches(unit, spec, machine, forward, backward);
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
