// The cross entropy of a sigmoid, and its accuracy. Forward saves 1 / number of counted decisions.

#include "kernels/loss/sigmoid_cross_entropy.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const SigmoidCrossEntropy& op, const Spec& spec, const Launcher& on) {
  Lowered unit = empty_unit(spec);
  const Shape& x = spec.x[0].shape;
  const auto partials = static_cast<std::size_t>(sigmoid_cross_entropy_partials(x.n, x.image()));
  unit.backward_reads_x = {true, true};
  with_type(on.backend, spec.y.dtype, [&]<class T>() {
    const bool training = spec.mode == Mode::training;
    const auto forward = [clip = op.clip, training](Stream stream, const Args& args) {
      sigmoid_cross_entropy_forward(stream, view<const T>(args.x[0]), view<const T>(args.x[1]), view<T>(args.y), clip,
                                    training ? static_cast<T*>(args.saved) : nullptr,
                                    static_cast<LossPartial*>(args.workspace));
    };
    unit.steps.push_back(launches(on, Pass::forward, forward, partials * sizeof(LossPartial)));
    if (!training) return;
    unit.saved_bytes = sizeof(T);
    const auto backward = [clip = op.clip, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
      if (wanted(args, 0))
        sigmoid_cross_entropy_backward(stream, view<const T>(args.x[0]), view<const T>(args.x[1]),
                                       view<const T>(args.dy), clip, static_cast<const T*>(args.saved),
                                       view<T>(args.dx[0]), adds);
    };
    unit.steps.push_back(launches(on, Pass::backward_data, backward));
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
