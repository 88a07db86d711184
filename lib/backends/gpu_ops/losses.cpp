// Softmax cross entropy over the channels of every pixel, and sigmoid cross entropy, with their accuracies. Forward of
// the sigmoid cross entropy saves 1 / (number of decisions that count).

#include "kernels/loss/loss.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const SoftmaxCrossEntropy& op, const Spec& spec, const Launcher& on) {
  Lowered unit = empty_unit(spec);
  const Shape& x = spec.x[0].shape;
  const std::int64_t rows = x.n * x.plane();
  const auto partials = static_cast<std::size_t>(softmax_cross_entropy_partials(x.n, x.plane()));
  const bool training = spec.mode == Mode::training;
  unit.backward_reads_x = {true, true};
  return with_type(on.backend, spec.y.dtype, [&]<class T>() {
    if (training) unit.saved_bytes = SoftmaxRows<T>::bytes(rows);
    const auto forward = [clip = op.clip, rows, training](Stream stream, const Args& args) {
      softmax_cross_entropy_forward(stream, view<const T>(args.x[0]), view<const T>(args.x[1]), view<T>(args.y), clip,
                                    training ? SoftmaxRows<T>(args.saved, rows) : SoftmaxRows<T>(),
                                    static_cast<LossPartial*>(args.workspace));
    };
    const auto backward = [rows](Stream stream, const Args& args, const Tensor& dx, bool adds) {
      softmax_cross_entropy_backward(stream, view<const T>(args.x[0]), view<const T>(args.x[1]), view<const T>(args.dy),
                                     SoftmaxRows<T>(args.saved, rows), view<T>(dx), adds);
    };
    return with_launches(unit, spec, on, forward, to_dx(spec, backward), partials * sizeof(LossPartial));
  });
}

Lowered lower(const SigmoidCrossEntropy& op, const Spec& spec, const Launcher& on) {
  Lowered unit = empty_unit(spec);
  const Shape& x = spec.x[0].shape;
  const auto partials = static_cast<std::size_t>(sigmoid_cross_entropy_partials(x.n, x.image()));
  unit.backward_reads_x = {true, true};
  return with_type(on.backend, spec.y.dtype, [&]<class T>() {
    const bool training = spec.mode == Mode::training;
    const auto forward = [clip = op.clip, training](Stream stream, const Args& args) {
      sigmoid_cross_entropy_forward(stream, view<const T>(args.x[0]), view<const T>(args.x[1]), view<T>(args.y), clip,
                                    training ? static_cast<T*>(args.saved) : nullptr,
                                    static_cast<LossPartial*>(args.workspace));
    };
    if (training) unit.saved_bytes = sizeof(T);
    const auto backward = [clip = op.clip](Stream stream, const Args& args, const Tensor& dx, bool adds) {
      sigmoid_cross_entropy_backward(stream, view<const T>(args.x[0]), view<const T>(args.x[1]), view<const T>(args.dy),
                                     clip, static_cast<const T*>(args.saved), view<T>(dx), adds);
    };
    return with_launches(unit, spec, on, forward, to_dx(spec, backward), partials * sizeof(LossPartial));
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
