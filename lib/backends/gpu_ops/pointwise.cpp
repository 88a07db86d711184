// Ops whose y is one function of x, element by element.

#include "kernels/pointwise.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// The value, beside dy, from which a gradient is computed.
enum class Reads { x, y };

/// The unit of an op whose y is a function of x; it may work in place.
template <class F>
Lowered lower_pointwise(const Spec& spec, const Launcher& on, Reads reads, const F& f) {
  Lowered unit = in_place_unit(spec);
  unit.backward_reads_x[0] = reads == Reads::x;
  unit.backward_reads_y = reads == Reads::y;
  const auto emit = [&]<class T>() {
    add_launches(
        unit, spec, on,
        [f](Stream stream, const Args& args) {
          pointwise_forward(stream, f, elements<const T>(args.x[0]), elements<T>(args.y));
        },
        [f, reads, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
          if (!wanted(args, 0)) return;
          const Tensor& v = reads == Reads::x ? args.x[0] : args.y;
          pointwise_backward(stream, f, elements<const T>(v), elements<const T>(args.dy), elements<T>(args.dx[0]),
                             adds);
        });
  };
  if constexpr (std::is_same_v<F, pointwise::HardSigmoid>) {
    with_type(on.backend, spec.y.dtype, emit);  // no halves: a rounded y may be 0 or 1, where the gradient is 0
  } else {
    with_storage(on.backend, spec.y.dtype, emit);
  }
  return unit;
}

}  // namespace

Lowered lower(const Relu&, const Spec& spec, const Launcher& on) {
  return lower_pointwise(spec, on, Reads::y, pointwise::Relu{});
}
Lowered lower(const Sigmoid&, const Spec& spec, const Launcher& on) {
  return lower_pointwise(spec, on, Reads::y, pointwise::Sigmoid{});
}
Lowered lower(const Tanh&, const Spec& spec, const Launcher& on) {
  return lower_pointwise(spec, on, Reads::y, pointwise::Tanh{});
}
Lowered lower(const Clip& op, const Spec& spec, const Launcher& on) {
  return lower_pointwise(spec, on, Reads::y, pointwise::Clip{op.low, op.high});
}
Lowered lower(const HardSigmoid& op, const Spec& spec, const Launcher& on) {
  return lower_pointwise(spec, on, Reads::y, pointwise::HardSigmoid{op.alpha, op.beta});
}
Lowered lower(const HardSwish&, const Spec& spec, const Launcher& on) {
  return lower_pointwise(spec, on, Reads::x, pointwise::HardSwish{});
}
Lowered lower(const Silu&, const Spec& spec, const Launcher& on) {
  return lower_pointwise(spec, on, Reads::x, pointwise::Silu{});
}

}  // namespace lamina::LAMINA_CUDA_SPACE
