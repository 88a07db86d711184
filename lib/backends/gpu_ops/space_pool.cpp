// Pools with dilated windows, any pads, or a third axis. Of maxima the winner of each window is saved: four bytes.

#include "kernels/pool/space_pool.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

SpaceAxis along(int extent, int count, const PoolAxis& axis) {
  return {extent, count, axis.size, axis.stride, axis.before, axis.after, axis.dilation};
}

template <class T>
void emit_maxima(Lowered& unit, const Spec& spec, const Space& space, bool places, const Launcher& on) {
  const auto without_winners = [space, places](Stream stream, const Args& args) {
    space_max_forward(stream, space, places, view<const T>(args.x[0]), view<T>(args.y), nullptr);
  };
  if (spec.mode == Mode::inference || places) {
    unit.steps.push_back(launches(on, Pass::forward, without_winners));
    return;
  }
  unit.saved_bytes = static_cast<std::size_t>(spec.y.shape.count()) * sizeof(std::int32_t);
  unit.steps.push_back(launches(on, Pass::forward, [space](Stream stream, const Args& args) {
    space_max_forward(stream, space, false, view<const T>(args.x[0]), view<T>(args.y),
                      static_cast<std::int32_t*>(args.saved));
  }));
  unit.steps.push_back(launches(on, Pass::recompute, without_winners));
  const auto backward = [space, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
    if (wanted(args, 0))
      space_max_backward(stream, space, view<const T>(args.dy), static_cast<const std::int32_t*>(args.saved),
                         view<T>(args.dx[0]), adds);
  };
  unit.steps.push_back(launches(on, Pass::backward_data, backward));
}

}  // namespace

Lowered lower(const SpacePool& op, const Spec& spec, const Launcher& on) {
  const Shape &x = spec.x[0].shape, &y = spec.y.shape;
  const Space space{along(op.slices, y.c / (x.c / op.slices), op.depth), along(x.h, y.h, op.rows),
                    along(x.w, y.w, op.columns)};
  Lowered unit = empty_unit(spec);
  unit.recompute_reads_x[0] = true;
  with_type(on.backend, spec.y.dtype, [&]<class T>() {
    if (op.of != PoolOf::mean) return emit_maxima<T>(unit, spec, space, op.of == PoolOf::place, on);
    add_launches(
        unit, spec, on,
        [space, counts = op.count_padding](Stream stream, const Args& args) {
          space_mean_forward(stream, space, counts, view<const T>(args.x[0]), view<T>(args.y));
        },
        [space, counts = op.count_padding, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
          if (wanted(args, 0))
            space_mean_backward(stream, space, counts, view<const T>(args.dy), view<T>(args.dx[0]), adds);
        });
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
