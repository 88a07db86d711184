// Group and layer normalisation: bind their kernels. Forward saves the statistics of every group or pixel.

#include "gpu_ops.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/norm/layer_norm.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// A parameter, or its gradient; null without parameters.
template <class Number>
Number* number_of(const std::vector<Tensor>& tensors, std::size_t k) {
  return tensors.empty() ? nullptr : tensors[k].as<Number>();
}

}  // namespace

Lowered lower(const GroupNorm& op, const Spec& spec, const Launcher& on) {
  Lowered unit = norm_unit(spec, {});
  const Shape& y = spec.y.shape;
  return with_storage(on.backend, spec.y.dtype, [&]<class T>() {
    const auto numbers = [op](const Args& args) {
      return GroupNumbers<T>{number_of<const Computed<T>>(args.w, 0), number_of<const Computed<T>>(args.w, 1),
                             op.epsilon, op.groups};
    };
    const auto forward = [numbers](Stream stream, const Args& args) {
      group_norm_forward(stream, view<const T>(args.x[0]), numbers(args), static_cast<NormChannel<T>*>(args.saved),
                         view<T>(args.y), args.workspace);
    };
    if (spec.mode == Mode::training)
      unit.saved_bytes = static_cast<std::size_t>(y.n) * static_cast<std::size_t>(op.groups) * sizeof(NormChannel<T>);
    const auto backward = [numbers, adds_dx = adds_dx(spec, 0), adds_dw = spec.adds_dw](Stream stream,
                                                                                        const Args& args) {
      const NormGradients<T> gradients = {.dx = wanted(args, 0) ? view<T>(args.dx[0]) : View<T>(),
                                          .dother = {},
                                          .adds_dx = adds_dx,
                                          .adds_dother = false,
                                          .dscale = number_of<Computed<T>>(args.dw, 0),
                                          .dshift = number_of<Computed<T>>(args.dw, 1),
                                          .adds_dw = adds_dw};
      group_norm_backward(stream, view<const T>(args.x[0]), view<const T>(args.dy), numbers(args),
                          static_cast<const NormChannel<T>*>(args.saved), gradients, args.workspace);
    };
    return with_launches(unit, spec, on, forward, backward, group_norm_forward_bytes<T>(y.n, y.c, y.plane(), op.groups),
                         batch_norm_backward_bytes<T>(y.n * y.c, y.plane()), gradient_passes(spec));
  });
}

Lowered lower(const LayerNorm& op, const Spec& spec, const Launcher& on) {
  Lowered unit = norm_unit(spec, {});
  const std::int64_t pixels = spec.y.shape.n * spec.y.shape.plane();
  return with_storage(on.backend, spec.y.dtype, [&]<class T>() {
    using Number = Computed<T>;
    using Saved = PixelStatistics<T>;
    const auto forward = [epsilon = op.epsilon](Stream stream, const Args& args) {
      layer_norm_forward(stream, view<const T>(args.x[0]), number_of<const Number>(args.w, 0),
                         number_of<const Number>(args.w, 1), epsilon, static_cast<Saved*>(args.saved), view<T>(args.y));
    };
    const auto backward = [](Stream stream, const Args& args, const Tensor& dx, bool adds) {
      layer_norm_backward(stream, view<const T>(args.x[0]), view<const T>(args.dy), number_of<const Number>(args.w, 0),
                          static_cast<const Saved*>(args.saved), view<T>(dx), adds);
    };
    unit = with_launches(unit, spec, on, forward, to_dx(spec, backward));
    if (spec.mode == Mode::inference) return unit;
    unit.saved_bytes = static_cast<std::size_t>(pixels) * sizeof(Saved);
    const auto params = [adds = spec.adds_dw](Stream stream, const Args& args) {
      layer_norm_gradient(stream, view<const T>(args.x[0]), view<const T>(args.dy),
                          static_cast<const Saved*>(args.saved), args.dw[0].as<Number>(), args.dw[1].as<Number>(), adds,
                          args.workspace);
    };
    if (op.affine)
      unit.steps.push_back(
          launches(on, {Pass::backward_params}, "direct", params, channel_sums_bytes(spec.y.shape.c, pixels)));
    return unit;
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
