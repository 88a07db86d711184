#pragma once
// Element-wise ops that are one smooth function, whose gradient follows from y: Sigmoid and Tanh.

#include "../common.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The unit of such an op, from its two launchers.
template <class Forward, class Backward>
Lowered lower_smooth(const Spec& spec, Machine& machine, Forward forward_kernel, Backward backward_kernel) {
  Lowered unit = in_place_unit(spec);
  with_type(spec.y.dtype, [&]<class T>() {
    add_launches(
        unit, spec, machine,
        [forward_kernel](Stream stream, const Args& args) {
          forward_kernel(stream, view<const T>(args.x[0]), view<T>(args.y));
        },
        [backward_kernel, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
          if (wanted(args, 0))
            backward_kernel(stream, view<const T>(args.y), view<const T>(args.dy), view<T>(args.dx[0]), adds);
        });
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
