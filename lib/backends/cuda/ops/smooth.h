#pragma once
// Element-wise ops that are one smooth function, whose gradient follows from y: Sigmoid and Tanh.

#include "../common.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// The unit of such an op, from its two launchers.
template <class Forward, class Backward>
Lowered lower_smooth(const Spec& spec, Machine& machine, Forward forward_kernel, Backward backward_kernel) {
  Lowered unit = empty_unit(spec);
  unit.y_may_alias_x[0] = same_pitch(spec, 0);
  unit.dx_may_alias_dy[0] = same_gradient_pitch(spec, 0);
  unit.recompute_reads_x[0] = true;
  unit.backward_reads_y = true;
  with_type(spec.y.dtype, [&]<class T>() {
    const auto forward = [forward_kernel](Stream stream, const Args& args) {
      forward_kernel(stream, view<const T>(args.x[0]), view<T>(args.y));
    };
    unit.steps.push_back(launches(machine, {Pass::forward}, "direct", forward));
    if (spec.mode == Mode::inference) return;
    unit.steps.push_back(launches(machine, {Pass::recompute}, "direct", forward));
    const auto backward = [backward_kernel, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
      if (wanted(args, 0))
        backward_kernel(stream, view<const T>(args.y), view<const T>(args.dy), view<T>(args.dx[0]), adds);
    };
    unit.steps.push_back(launches(machine, {Pass::backward_data}, "direct", backward));
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
