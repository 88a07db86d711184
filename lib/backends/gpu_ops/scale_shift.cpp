// A tensor times fixed numbers, plus others.

#include "kernels/scale_shift.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const ScaleShift& op, const Spec& spec, const Launcher& on) {
  Lowered unit = in_place_unit(spec);
  unit.backward_reads_y = false;
  const std::int64_t run = op.by_channel ? spec.y.shape.plane() : spec.y.shape.image();
  with_type(on.backend, spec.y.dtype, [&]<class T>() {
    add_launches(
        unit, spec, on,
        [run](Stream stream, const Args& args) {
          scale_shift(stream, ScaleAndShift<T>{args.state[0].as<T>(), args.state[1].as<T>(), run},
                      elements<const T>(args.x[0]), elements<T>(args.y), false);
        },
        [run, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
          if (!wanted(args, 0)) return;
          scale_shift(stream, ScaleAndShift<T>{args.state[0].as<T>(), nullptr, run}, elements<const T>(args.dy),
                      elements<T>(args.dx[0]), adds);
        });
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
