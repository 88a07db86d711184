// Ops that move elements: a border of a number or of cells, axes in another order.

#include "kernels/moves/moves.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {

static_assert(static_cast<int>(BorderOf::value) == static_cast<int>(PadBy::value) &&
              static_cast<int>(BorderOf::edge) == static_cast<int>(PadBy::edge) &&
              static_cast<int>(BorderOf::reflect) == static_cast<int>(PadBy::reflect) &&
              static_cast<int>(BorderOf::wrap) == static_cast<int>(PadBy::wrap));

Lowered lower(const Pad& op, const Spec& spec, const Launcher& on) {
  const Border border{op.before.h, op.before.w, static_cast<BorderOf>(op.by)};
  Lowered unit = empty_unit(spec);
  unit.recompute_reads_x[0] = true;
  with_type(on.backend, spec.y.dtype, [&]<class T>() {
    add_launches(
        unit, spec, on,
        [border, value = static_cast<T>(op.value)](Stream stream, const Args& args) {
          pad_forward(stream, view<const T>(args.x[0]), border, value, view<T>(args.y));
        },
        [border, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
          if (wanted(args, 0)) pad_backward(stream, view<const T>(args.dy), border, view<T>(args.dx[0]), adds);
        });
  });
  return unit;
}

namespace {

ReorderAxes kernel_axes(const std::vector<CopyAxis>& axes) {
  ReorderAxes all;
  for (const CopyAxis& axis : axes)
    all.axes[all.count++] = {static_cast<int>(axis.extent), static_cast<int>(axis.from), static_cast<int>(axis.to)};
  return all;
}

}  // namespace

Lowered lower(const Reorder& op, const Spec& spec, const Launcher& on) {
  const std::vector<CopyAxis> axes = copy_axes(op);
  Lowered unit = reorder_unit(spec, axes);
  with_type(on.backend, spec.y.dtype, [&]<class T>() {
    add_launches(
        unit, spec, on,
        [axes = kernel_axes(axes)](Stream stream, const Args& args) {
          if (!same_place(args.x[0], args.y)) reorder(stream, view<const T>(args.x[0]), axes, view<T>(args.y), false);
        },
        [axes = kernel_axes(inverse(axes)), adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
          if (wanted(args, 0) && !same_place(args.dx[0], args.dy))
            reorder(stream, view<const T>(args.dy), axes, view<T>(args.dx[0]), adds);
        });
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
