// y = max(x, 0). The gradient's mask is read from y, so x is not kept.

#include "../../../../kernels/relu.h"

#include "../common.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const Relu&, const Spec& spec, const Choice&, Machine& machine) {
  Lowered unit = in_place_unit(spec);
  with_type(spec.y.dtype, [&]<class T>() {
    add_launches(
        unit, spec, machine,
        [](Stream stream, const Args& args) { relu_forward(stream, view<const T>(args.x[0]), view<T>(args.y)); },
        [adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
          if (wanted(args, 0))
            relu_backward(stream, view<const T>(args.y), view<const T>(args.dy), view<T>(args.dx[0]), adds);
        });
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
