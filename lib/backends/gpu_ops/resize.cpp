// Resizes images to another number of rows and columns.

#include "kernels/resize.h"

#include "gpu_ops.h"
#include "lib/core/units/resize_axis.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const Resize& op, const Spec& spec, const Launcher& on) {
  const auto positions = [](const ResizeAxis& axis) {
    return Positions{axis.step, axis.offset, axis.extent, axis.linear};
  };
  const ResizeAxes axes = resize_axes(op, spec.x[0].shape);
  const Positions rows = positions(axes.rows), columns = positions(axes.columns);
  return with_storage(on.backend, spec.y.dtype, [&]<class T>() {
    return with_launches(
        empty_unit(spec), spec, on,
        [rows, columns](Stream stream, const Args& args) {
          resize_forward(stream, view<const T>(args.x[0]), rows, columns, view<T>(args.y));
        },
        to_dx(spec, [rows, columns](Stream stream, const Args& args, const Tensor& dx, bool adds) {
          resize_backward(stream, view<const T>(args.dy), rows, columns, view<T>(dx), adds);
        }));
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
