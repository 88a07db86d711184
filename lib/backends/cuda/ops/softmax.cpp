// Softmax over the channels of every pixel. The gradient is computed from y alone.

#include "kernels/softmax.h"

#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const Softmax&, const Spec& spec, const Choice&, Machine& machine) {
  Lowered unit = in_place_unit(spec);
  with_type(spec.y.dtype, [&]<class T>() {
    add_launches(
        unit, spec, machine,
        [](Stream stream, const Args& args) { softmax_forward(stream, view<const T>(args.x[0]), view<T>(args.y)); },
        [adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
          if (wanted(args, 0))
            softmax_backward(stream, view<const T>(args.y), view<const T>(args.dy), view<T>(args.dx[0]), adds);
        });
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
