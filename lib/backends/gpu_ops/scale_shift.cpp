// ScaleShift: y = scale x + shift, both fixed or learned. PRelu: y = weight x where x is not above 0.

#include "kernels/scale_shift.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {

namespace {

/// Lowers a PRelu if `below`, else a ScaleShift.
Lowered lower_runs(const Spec& spec, const Launcher& on, bool by_channel, bool learned, bool below) {
  Lowered unit = in_place_unit(spec);
  unit.backward_reads_y = false;
  const std::int64_t run = by_channel ? spec.y.shape.plane() : spec.y.shape.image();
  unit.backward_reads_x[0] = learned;
  return with_type(on.backend, spec.y.dtype, [&]<class T>() {
    const auto numbers = [run, learned](const Args& args, bool shifts) {
      const std::vector<Tensor>& its = learned ? args.w : args.state;
      return ScaleAndShift<T>{its[0].as<T>(), shifts ? its[1].as<T>() : nullptr, run};
    };
    unit = with_launches(
        unit, spec, on,
        [numbers, below](Stream stream, const Args& args) {
          const auto x = elements<const T>(args.x[0]);
          const auto y = elements<T>(args.y);
          if (below) return prelu(stream, numbers(args, false), x, x, y, false);
          scale_shift(stream, numbers(args, true), x, y, false);
        },
        to_dx(spec, [numbers, below](Stream stream, const Args& args, const Tensor& to, bool adds) {
          const auto dy = elements<const T>(args.dy);
          const auto dx = elements<T>(to);
          if (below) return prelu(stream, numbers(args, false), elements<const T>(args.x[0]), dy, dx, adds);
          scale_shift(stream, numbers(args, false), dy, dx, adds);
        }));
    if (!learned || spec.mode == Mode::inference) return unit;
    unit.steps.push_back(launches(
        on, {Pass::backward_params}, "direct",
        [by_channel, below, adds = spec.adds_dw](Stream stream, const Args& args) {
          scale_shift_gradient(stream, view<const T>(args.x[0]), view<const T>(args.dy), args.dw[0].as<T>(),
                               below ? nullptr : args.dw[1].as<T>(), by_channel, adds, args.workspace);
        },
        channel_sums_bytes(spec.y.shape.c, spec.y.shape.n * spec.y.shape.plane())));
    return unit;
  });
}

}  // namespace

Lowered lower(const ScaleShift& op, const Spec& spec, const Launcher& on) {
  return lower_runs(spec, on, op.by_channel, op.learned, false);
}
Lowered lower(const PRelu& op, const Spec& spec, const Launcher& on) {
  return lower_runs(spec, on, op.by_channel, true, true);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
