// The mean of each plane. Nothing is saved; backward reads only dy.

#include "kernels/pool/global_average_pool.h"

#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const GlobalAveragePool&, const Spec& spec, const Choice&, Machine& machine) {
  Lowered unit = empty_unit(spec);
  unit.recompute_reads_x[0] = true;
  with_storage(spec.y.dtype, [&]<class T>() {
    const auto forward = [](Stream stream, const Args& args) {
      global_average_pool_forward(stream, view<const T>(args.x[0]), view<T>(args.y));
    };
    const auto backward = [adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
      if (wanted(args, 0)) global_average_pool_backward(stream, view<const T>(args.dy), view<T>(args.dx[0]), adds);
    };
    add_launches(unit, spec, machine, forward, backward);
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
