// y = x * mask / (1 - rate). The mask is drawn from counters, so forward saves only the number of the step.

#include "kernels/dropout.h"

#include <cmath>

#include "gpu_ops.h"
#include "kernels/moves/moves.h"
#include "lib/backends/common/unit_checks.h"

namespace lamina::LAMINA_CUDA_SPACE {

Lowered lower(const Dropout& op, const Spec& spec, const Launcher& on) {
  check_whole_batch(on.backend, op);
  Lowered unit = empty_unit(spec);
  unit.y_may_alias_x[0] = same_pitch(spec, 0);
  const auto emit = [&](Pass pass, auto function) { unit.steps.push_back(launches(on, {pass}, "direct", function)); };
  with_storage(on.backend, spec.y.dtype, [&]<class T>() {
    if (spec.mode == Mode::inference) {
      emit(Pass::forward, [](Stream stream, const Args& args) {
        if (!same_place(args.y, args.x[0])) copy(stream, view<const T>(args.x[0]), view<T>(args.y), false);
      });
      return;
    }
    unit.saved_bytes = sizeof(std::uint64_t);
    unit.dx_may_alias_dy[0] = same_gradient_pitch(spec, 0);
    const DropoutMask mask = {.key = op.seed,
                              .threshold = static_cast<std::uint64_t>(std::ceil(op.rate * 0x1p32)),
                              .scale = 1 / (1 - op.rate)};
    const auto recompute = [mask](Stream stream, const Args& args) {
      dropout_apply(stream, mask, static_cast<const std::uint64_t*>(args.saved), view<const T>(args.x[0]),
                    view<T>(args.y), false);
    };
    emit(Pass::forward, [recompute](Stream stream, const Args& args) {
      dropout_advance(stream, args.state[0].as<std::uint64_t>(), static_cast<std::uint64_t*>(args.saved));
      recompute(stream, args);
    });
    emit(Pass::recompute, recompute);
    emit(Pass::backward_data, to_dx(spec, [mask](Stream stream, const Args& args, const Tensor& dx, bool adds) {
           dropout_apply(stream, mask, static_cast<const std::uint64_t*>(args.saved), view<const T>(args.dy),
                         view<T>(dx), adds);
         }));
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
