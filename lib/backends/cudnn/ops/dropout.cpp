// y = x * mask / (1 - rate), with the mask that every backend draws. The library's masks differ between versions.

#include <cmath>

#include "lib/backends/common/unit_checks.h"
#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn {

Lowered lower(const Dropout& op, const Spec& spec, const Choice&, Session& session) {
  check_whole_batch("cudnn", op);
  Lowered unit = empty_unit(spec);
  unit.y_may_alias_x[0] = same_pitch(spec, 0);
  const auto emit = [&](Pass pass, auto function) {
    unit.steps.push_back(step({pass}, "direct", std::move(function)));
  };
  if (spec.mode == Mode::inference) {
    struct Copy {
      TensorDescriptor x, y;
    };
    const Api& api = session.api();
    const auto copy = std::make_shared<Copy>(Copy{describe_value(api, spec.x[0]), describe_value(api, spec.y)});
    emit(Pass::forward, [&session, &api, copy, dtype = spec.y.dtype](const Args& args) {
      if (!same_place(args.y, args.x[0]))
        LAMINA_CUDNN(api, TransformTensor, session.handle(), one(dtype), copy->x.get(), args.x[0].data, zero(dtype),
                     copy->y.get(), args.y.data);
    });
    return unit;
  }
  unit.saved_bytes = sizeof(std::uint64_t);
  unit.dx_may_alias_dy[0] = same_gradient_pitch(spec, 0);
  unit.recompute_reads_x[0] = true;
  const Mask mask = {
      .key = op.seed, .threshold = static_cast<std::uint64_t>(std::ceil(op.rate * 0x1p32)), .scale = 1 / (1 - op.rate)};
  const auto recompute = [&session, mask](const Args& args) {
    session.machine().apply_dropout(mask, static_cast<const std::uint64_t*>(args.saved), args.x[0], args.y, false);
  };
  emit(Pass::forward, [&session, recompute](const Args& args) {
    session.machine().advance_dropout(args.state[0].as<std::uint64_t>(), static_cast<std::uint64_t*>(args.saved));
    recompute(args);
  });
  emit(Pass::recompute, recompute);
  emit(Pass::backward_data, [&session, mask, adds = adds_dx(spec, 0)](const Args& args) {
    if (wanted(args, 0))
      session.machine().apply_dropout(mask, static_cast<const std::uint64_t*>(args.saved), args.dy, args.dx[0], adds);
  });
  return unit;
}

}  // namespace lamina::cudnn
