// Ops whose y is one function of x, element by element: ReLU and Pointwise.

#include "kernels/pointwise.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

Lowered lower_pointwise(const Spec& spec, const Launcher& on, const PointwiseFunction& f) {
  Lowered unit = pointwise_unit(spec);
  const bool reads_x = unit.backward_reads_x[0];
  const auto emit = [&]<class T>() {
    add_launches(
        unit, spec, on,
        [f](Stream stream, const Args& args) {
          pointwise_forward(stream, f, elements<const T>(args.x[0]), elements<T>(args.y));
        },
        [f, reads_x, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
          if (!wanted(args, 0)) return;
          const Tensor& v = reads_x ? args.x[0] : args.y;
          pointwise_backward(stream, f, elements<const T>(v), elements<const T>(args.dy), elements<T>(args.dx[0]),
                             adds);
        });
  };
  if (gpu_op_takes_halves(spec.op)) {
    with_storage(on.backend, spec.y.dtype, emit);
  } else {
    with_type(on.backend, spec.y.dtype, emit);
  }
  return unit;
}

}  // namespace

Lowered lower(const Relu&, const Spec& spec, const Launcher& on) {
  return lower_pointwise(spec, on, {PointwiseFunction::relu});
}
Lowered lower(const Pointwise& op, const Spec& spec, const Launcher& on) {
  static_assert(static_cast<int>(Function::pow) == PointwiseFunction::pow);
  return lower_pointwise(spec, on, {static_cast<PointwiseFunction::Name>(op.function), op.a, op.b});
}

}  // namespace lamina::LAMINA_CUDA_SPACE
