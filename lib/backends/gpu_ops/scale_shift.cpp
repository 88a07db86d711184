// A tensor times fixed or learned numbers, plus others.

#include "kernels/scale_shift.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const ScaleShift& op, const Spec& spec, const Launcher& on) {
  Lowered unit = in_place_unit(spec);
  unit.backward_reads_y = false;
  const std::int64_t run = op.by_channel ? spec.y.shape.plane() : spec.y.shape.image();
  unit.backward_reads_x[0] = op.learned;
  with_type(on.backend, spec.y.dtype, [&]<class T>() {
    const auto number = [learned = op.learned](const Args& args, std::size_t k) {
      return (learned ? args.w : args.state)[k].as<T>();
    };
    add_launches(
        unit, spec, on,
        [run, number](Stream stream, const Args& args) {
          scale_shift(stream, ScaleAndShift<T>{number(args, 0), number(args, 1), run}, elements<const T>(args.x[0]),
                      elements<T>(args.y), false);
        },
        [run, number, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
          if (!wanted(args, 0)) return;
          scale_shift(stream, ScaleAndShift<T>{number(args, 0), nullptr, run}, elements<const T>(args.dy),
                      elements<T>(args.dx[0]), adds);
        });
    if (!op.learned || spec.mode == Mode::inference) return;
    unit.steps.push_back(launches(
        on, Pass::backward_params,
        [by_channel = op.by_channel, adds = spec.adds_dw](Stream stream, const Args& args) {
          scale_shift_gradient(stream, view<const T>(args.x[0]), view<const T>(args.dy), args.dw[0].as<T>(),
                               args.dw[1].as<T>(), by_channel, adds, args.workspace);
        },
        scale_shift_gradient_bytes(spec.y.shape.c, spec.y.shape.n * spec.y.shape.plane())));
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
