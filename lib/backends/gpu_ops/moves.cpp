// Ops that move elements: a border of a number or of cells, channels in another order.

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

Lowered lower(const ChannelShuffle& op, const Spec& spec, const Launcher& on) {
  const int groups = op.groups, members = spec.y.shape.c / groups;
  Lowered unit = empty_unit(spec);
  unit.recompute_reads_x[0] = true;
  with_type(on.backend, spec.y.dtype, [&]<class T>() {
    add_launches(
        unit, spec, on,
        [groups](Stream stream, const Args& args) {
          channel_shuffle(stream, view<const T>(args.x[0]), view<T>(args.y), groups, false);
        },
        [members, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
          if (wanted(args, 0)) channel_shuffle(stream, view<const T>(args.dy), view<T>(args.dx[0]), members, adds);
        });
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
