// The loss of a softmax over the channels of every pixel, and its accuracy.

#include "kernels/loss/softmax_cross_entropy.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const SoftmaxCrossEntropy& op, const Spec& spec, const Launcher& on) {
  Lowered unit = empty_unit(spec);
  const Shape& x = spec.x[0].shape;
  const std::int64_t rows = x.n * x.plane();
  const auto partials = static_cast<std::size_t>(softmax_cross_entropy_partials(x.n, x.plane()));
  const bool training = spec.mode == Mode::training;
  unit.backward_reads_x = {true, true};
  with_type(on.backend, spec.y.dtype, [&]<class T>() {
    if (training) unit.saved_bytes = SoftmaxRows<T>::bytes(rows);
    const auto forward = [clip = op.clip, rows, training](Stream stream, const Args& args) {
      softmax_cross_entropy_forward(stream, view<const T>(args.x[0]), view<const T>(args.x[1]), view<T>(args.y), clip,
                                    training ? SoftmaxRows<T>(args.saved, rows) : SoftmaxRows<T>(),
                                    static_cast<LossPartial*>(args.workspace));
    };
    unit.steps.push_back(launches(on, Pass::forward, forward, partials * sizeof(LossPartial)));
    if (!training) return;
    const auto backward = [rows, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
      if (wanted(args, 0))
        softmax_cross_entropy_backward(stream, view<const T>(args.x[0]), view<const T>(args.x[1]),
                                       view<const T>(args.dy), SoftmaxRows<T>(args.saved, rows), view<T>(args.dx[0]),
                                       adds);
    };
    unit.steps.push_back(launches(on, Pass::backward_data, backward));
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
