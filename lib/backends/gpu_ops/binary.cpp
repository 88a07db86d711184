// Products of two tensors, or of a tensor with one factor for each plane.

#include "kernels/binary.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// Kernels that read a factor per plane need views; products of equal shapes take elements in any order.
template <class T>
View<T> operand(const Tensor& tensor, bool of_planes) {
  return of_planes ? view<T>(tensor) : elements<T>(tensor);
}

}  // namespace

Lowered lower(const Multiply&, const Spec& spec, const Launcher& on) {
  const bool of_planes = spec.x[0].shape != spec.x[1].shape;
  Lowered unit = product_unit(spec);
  with_type(on.backend, spec.y.dtype, [&]<class T>() {
    add_launches(
        unit, spec, on,
        [of_planes](Stream stream, const Args& args) {
          multiply_forward(stream, operand<const T>(args.x[0], of_planes), operand<const T>(args.x[1], of_planes),
                           operand<T>(args.y, of_planes));
        },
        [of_planes, adds_a = adds_dx(spec, 0), adds_b = adds_dx(spec, 1)](Stream stream, const Args& args) {
          Factors<T> gradients;
          if (wanted(args, 0)) gradients.da = operand<T>(args.dx[0], of_planes);
          if (wanted(args, 1)) gradients.db = operand<T>(args.dx[1], of_planes);
          gradients.adds_a = adds_a;
          gradients.adds_b = adds_b;
          multiply_backward(stream, operand<const T>(args.x[0], of_planes), operand<const T>(args.x[1], of_planes),
                            operand<const T>(args.dy, of_planes), gradients);
        });
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
