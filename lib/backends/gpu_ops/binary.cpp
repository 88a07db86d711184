// Functions of two tensors. Either tensor may be repeated along an axis.

#include "kernels/binary.h"

#include "gpu_ops.h"
#include "lib/core/units/binary.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// Whether both enumerators have the same number, and their gradients read the same operands.
constexpr bool is_alike(BinaryFunction function, BinaryWork::Name name) {
  for (const int of : {0, 1})
    for (const int which : {0, 1})
      if (gradient_reads(function, of, which) != binary_gradient_reads(name, of, which)) return false;
  return static_cast<int>(function) == name;
}
static_assert(is_alike(BinaryFunction::add, BinaryWork::add) &&
              is_alike(BinaryFunction::subtract, BinaryWork::subtract) &&
              is_alike(BinaryFunction::multiply, BinaryWork::multiply) &&
              is_alike(BinaryFunction::divide, BinaryWork::divide) &&
              is_alike(BinaryFunction::maximum, BinaryWork::maximum) &&
              is_alike(BinaryFunction::minimum, BinaryWork::minimum));

/// With equal shapes kernels take elements in any order.
template <class T>
View<T> operand(const Tensor& tensor, bool equal) {
  return equal ? elements<T>(tensor) : view<T>(tensor);
}

BinaryWork work_of(const Binary& op, const Spec& spec) {
  const std::vector<BinaryAxis> axes = binary_axes(spec.x[0].shape, spec.x[1].shape);
  BinaryWork work{static_cast<BinaryWork::Name>(op.function), static_cast<int>(axes.size()), {}};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    work.axis[i].extent = static_cast<int>(axes[i].extent);
    for (std::size_t k = 0; k < 3; ++k) work.axis[i].steps[k] = static_cast<int>(axes[i].steps[k]);
  }
  return work;
}

}  // namespace

Lowered lower(const Binary& op, const Spec& spec, const Launcher& on) {
  const bool equal = spec.x[0].shape == spec.x[1].shape;
  return with_type(on.backend, spec.y.dtype, [&]<class T>() {
    return with_launches(
        binary_unit(spec), spec, on,
        [work = work_of(op, spec), equal](Stream stream, const Args& args) {
          binary_forward(stream, work, operand<const T>(args.x[0], equal), operand<const T>(args.x[1], equal),
                         operand<T>(args.y, equal));
        },
        [work = work_of(op, spec), equal, spec](Stream stream, const Args& args) {
          BinaryGradients<T> gradients;
          for (std::size_t of = 0; of < 2; ++of) {
            if (wanted(args, of)) gradients.d[of] = operand<T>(args.dx[of], equal);
            gradients.adds[of] = adds_dx(spec, of);
          }
          binary_backward(stream, work, operand<const T>(args.x[0], equal), operand<const T>(args.x[1], equal),
                          operand<const T>(args.dy, equal), gradients);
        });
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
